"""``lockstep doctor``: what cluster, parts and nodes have, what is missing, and what mends that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from typing import Annotated, Final

import msgspec
import typer

from lockstep.api.core import NODES, Node
from lockstep.api.devices import Device
from lockstep.api.names import CPU, DEVICES_ANNOTATION, FENCED_ANNOTATION, GPU, MEMORY, NICS
from lockstep.cli.app import App
from lockstep.cli.cluster_lacks import Finding, lacks, look, told
from lockstep.cli.connect import Session, run
from lockstep.cli.options import Cluster
from lockstep.cli.output import print_lines
from lockstep.devices.core.model import Inventory
from lockstep.kube.silent_parts import installed, part_of, silent_parts

app = App()

PRESENT: Final = {
    "feature.node.kubernetes.io/pci-10de.present": (GPU, "an NVIDIA card"),
    "feature.node.kubernetes.io/pci-15b3.present": (NICS, "an RDMA card"),
}
"""Labels by which Node Feature Discovery says what hangs on a node, and what hands it out."""
EXTRAS: Final = {"pynvml": "gpu", "grpc": "agent", "obstore": "data", "asyncssh": "notebooks"}
"""A module of each extra that a node may need."""


def has(node: Node) -> str:
    """Return what pods may have of *node*."""
    amounts = node.status.allocatable
    usual = [name for name in (CPU, MEMORY) if name in amounts]
    others = sorted(name for name in amounts if "/" in name)
    return ", ".join(f"{amounts[name]} {name}" for name in [*usual, *others]) or "nothing"


def of_node(node: Node) -> Iterator[Finding]:
    """Yield what is missing on a node, by what its object says."""
    name = node.metadata.name
    for aspect in node.status.conditions:
        if aspect.type == "Ready" and aspect.status != "True":
            yield Finding(
                f"the node is not ready: {aspect.message}", f"kubectl describe node {name}"
            )
        if aspect.type == "LimitsEnforced" and aspect.status != "True":
            remedy = "run the node as root, or with control groups of its own (docs/nodes.md)"
            yield Finding(f"the node does not enforce limits: {aspect.message}", remedy)
    if node.spec.unschedulable:
        yield Finding(
            "the node is cordoned: it takes no new pods", f"lockstep node uncordon {name}"
        )
    for label, (resource, words) in PRESENT.items():
        amount = node.status.allocatable.get(resource, 0)
        if label in node.metadata.labels and str(amount) in ("0", ""):
            text = f"the node has {words} but offers no {resource}: no device plugin runs there"
            yield Finding(text, f"run `lockstep agent` on {name} (docs/devices.md)")
    for one in _devices(node):
        if not one.healthy:
            known = one.name or one.model or one.uuid
            text = f"{one.kind} {one.index} ({known}) is broken: pods do not get it"
            yield Finding(text, f"lockstep node get {name} -o yaml; dmesg on the node says why")
    if fenced := node.metadata.annotations.get(FENCED_ANNOTATION):
        yield Finding(
            f"health checks keep pods off {fenced}", f"kubectl describe nodehealth {name}"
        )


def _devices(node: Node) -> list[Device]:
    text = node.metadata.annotations.get(DEVICES_ANNOTATION, "[]")
    try:
        return msgspec.json.decode(text, type=list[Device])
    except msgspec.MsgspecError:
        return []


def of_machine(found: Inventory, modules: Iterable[str]) -> Iterator[Finding]:
    """Yield what is missing on this machine for its devices; *modules* are those it has."""
    there = set(modules)
    vendors = {card.vendor for card in found.cards}
    for remark in found.remarks:
        yield Finding(remark, "install NVIDIA's driver; `nvidia-smi` must list the card")
    for card in found.cards:
        if card.trouble:
            text = f"{card.model or card.resource} {card.index}: {card.trouble}"
            yield Finding(text, "dmesg | tail; a reset of the machine often helps")
    for port in found.ports:
        if not port.active:
            device = port.interfaces[0] if port.interfaces else port.name
            yield Finding(f"{port.name} has no link", f"ip link set {device} up; check its cable")
    if "nvidia" in vendors and "pynvml" not in there:
        yield Finding(
            "the Python library pynvml, which reads GPUs, is not installed",
            "pip install 'lockstep[gpu]'",
        )
    if (found.cards or found.ports) and "grpc" not in there:
        yield Finding(
            "the Python library grpc, which the node agent needs, is not installed",
            "pip install 'lockstep[agent]'",
        )


def machine(found: Inventory) -> str:
    """Return what this machine has beside CPUs."""
    cards = Counter(f"{card.model or card.vendor} ({card.resource})" for card in found.cards)
    ports = Counter("RDMA port" if port.rdma else "port" for port in found.ports)
    counted = [f"{count} {name}" for name, count in [*cards.items(), *ports.items()]]
    return ", ".join(counted) or "no accelerator and no RDMA card"


@app.command()
def doctor(
    *,
    local: Annotated[bool, "--local", "Look at this machine alone; needs no cluster."] = False,
    target: Cluster,
) -> None:
    """Say what is missing and what mends it: in the cluster, part by part, and on each node.

    It ends with 1 where something is missing.

    \b
    Examples:
      lockstep doctor
      lockstep doctor --local
    """
    from lockstep.devices.finding import find

    found = find()
    here = list(of_machine(found, (name for name in EXTRAS if find_spec(name))))
    print_lines([f"this machine: {machine(found)}", *told(here)])
    missing = bool(here)
    if not local:
        missing = run(target, _cluster) or missing
    raise typer.Exit(1 if missing else 0)


async def _cluster(session: Session) -> bool:
    """Print the findings of the cluster, its parts and its nodes; return whether there are any."""
    findings = list(lacks(await look(session)))
    print_lines(["the cluster", *told(findings)])
    some = bool(findings)
    for name, words, missing in await _parts(session):
        some = some or bool(missing)
        print_lines([f"{name}: {words}", *told(missing)])
    for node in (await session.client.list(NODES)).items:
        findings = list(of_node(node))
        some = some or bool(findings)
        print_lines([f"{node.metadata.name}: {has(node)}", *told(findings)])
    return some


async def _parts(session: Session) -> list[tuple[str, str, list[Finding]]]:
    """Return each installed part: how many of its pods are ready, and what is wrong with it."""
    silent = {one.part: one for one in await silent_parts(session.client)}
    found = []
    for one in await installed(session.client):
        part = part_of(one)
        wanted = one.status.get("desiredNumberScheduled", one.spec.get("replicas", 0))
        ready = one.status.get("numberReady", one.status.get("readyReplicas", 0))
        missing = [Finding(silent[part].seen, silent[part].look)] if part in silent else []
        found.append((part, f"{ready} of {wanted} pods are ready", missing))
    return found
