"""``lockstep doctor``: what each node has, what is missing for it, and what mends that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Annotated, Final

import msgspec
import typer

from lockstep.api.core import NODES, Node
from lockstep.api.devices import Device
from lockstep.api.names import CPU, DEVICES_ANNOTATION, FENCED_ANNOTATION, GPU, MEMORY, NICS
from lockstep.cli.connect import Session, Target, run
from lockstep.cli.options import Context, Kubeconfig
from lockstep.cli.output import print_lines
from lockstep.devices.core.model import Inventory

app = typer.Typer(rich_markup_mode=None)

PRESENT: Final = {
    "feature.node.kubernetes.io/pci-10de.present": (GPU, "an NVIDIA card"),
    "feature.node.kubernetes.io/pci-15b3.present": (NICS, "an RDMA card"),
}
"""Labels by which Node Feature Discovery says what hangs on a node, and what hands it out."""
EXTRAS: Final = {"pynvml": "gpu", "grpc": "agent", "obstore": "data", "asyncssh": "notebooks"}
"""A module of each extra that a node may need."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is missing, and the command or page that mends it."""

    what: str
    remedy: str

    def lines(self) -> list[str]:
        """Return it as it is printed."""
        return [f"  missing: {self.what}", f"     mend: {self.remedy}"]


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
            yield Finding(f"it is not ready: {aspect.message}", f"kubectl describe node {name}")
        if aspect.type == "LimitsEnforced" and aspect.status != "True":
            remedy = "run the node as root, or with control groups of its own (docs/nodes.md)"
            yield Finding(f"limits are not enforced: {aspect.message}", remedy)
    if node.spec.unschedulable:
        yield Finding("it takes no new pods", f"lockstep node uncordon {name}")
    for label, (resource, words) in PRESENT.items():
        amount = node.status.allocatable.get(resource, 0)
        if label in node.metadata.labels and str(amount) in ("0", ""):
            text = f"it has {words}, and nothing hands out {resource}"
            yield Finding(text, f"run `lockstep agent` on {name} (docs/devices.md)")
    for one in _devices(node):
        if not one.healthy:
            known = one.name or one.model or one.uuid
            text = f"{one.kind} {one.index} ({known}) is not usable"
            yield Finding(text, f"lockstep node get {name} -o yaml; dmesg on the node says why")
    if fenced := node.metadata.annotations.get(FENCED_ANNOTATION):
        yield Finding(f"{fenced} are fenced off", f"kubectl describe nodehealth {name}")


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
        yield Finding("the library that asks NVIDIA's driver", "pip install 'lockstep[gpu]'")
    if (found.cards or found.ports) and "grpc" not in there:
        yield Finding("what the node agent needs", "pip install 'lockstep[agent]'")


def machine(found: Inventory) -> str:
    """Return what this machine has beside CPUs."""
    cards = Counter(f"{card.model or card.vendor} ({card.resource})" for card in found.cards)
    ports = Counter("RDMA port" if port.rdma else "port" for port in found.ports)
    counted = [f"{count} {name}" for name, count in [*cards.items(), *ports.items()]]
    return ", ".join(counted) or "no accelerator and no RDMA card"


@app.command()
def doctor(
    *,
    local: Annotated[
        bool, typer.Option("--local", help="Look at this machine alone; needs no cluster.")
    ] = False,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Say what each node has (CPU, GPU, NPU, RDMA, FPGA), what is missing, and what mends it.

    It ends with 1 where something is missing.

    \b
    Examples:
      lockstep doctor
      lockstep doctor --local
    """
    from lockstep.devices.finding import find

    found = find()
    here = list(of_machine(found, (name for name in EXTRAS if find_spec(name))))
    print_lines([f"this machine: {machine(found)}", *_told(here)])
    missing = bool(here)
    if not local:
        missing = run(Target(kubeconfig, context), _nodes) or missing
    raise typer.Exit(1 if missing else 0)


async def _nodes(session: Session) -> bool:
    """Print the findings of every node; return whether there are any."""
    some = False
    for node in (await session.client.list(NODES)).items:
        findings = list(of_node(node))
        some = some or bool(findings)
        print_lines([f"{node.metadata.name}: {has(node)}", *_told(findings)])
    return some


def _told(findings: list[Finding]) -> list[str]:
    return [line for one in findings for line in one.lines()] or ["  nothing is missing"]
