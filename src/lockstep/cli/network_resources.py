"""What device plugins' ConfigMaps make of a node's NICs, and attachments of rails for Multus."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lockstep.api.core import PODS
from lockstep.api.names import JOB_LABEL
from lockstep.api.topology import TOPOLOGIES, Rail
from lockstep.api.wire import to_builtins
from lockstep.cli.connect import Session
from lockstep.cli.failure import BadInput, CommandFailed
from lockstep.cli.network_check import filled, whole
from lockstep.compat import multus
from lockstep.compat.nic_plugins import made, read
from lockstep.devices.network import planning
from lockstep.devices.network.candidates import candidates
from lockstep.devices.network.checklist import about, checks, recorded_matrix, verdict
from lockstep.devices.network.recording import record
from lockstep.devices.network.tree import Tree, trees
from lockstep.kube.errors import NotFound


def resources(config: Path, folder: Path | None) -> dict[str, Any]:
    """Return by node the resources that a plugin's ConfigMap or ``config.json`` makes.

    Raises:
        BadInput: when it is neither plugin's.
    """
    import yaml

    try:
        text = config.read_text(errors="replace")
        tree = yaml.safe_load(text)
        if isinstance(tree, dict) and tree.get("kind") == "ConfigMap":
            text = next(iter((tree.get("data") or {}).values()), "")
        stated, problems = read(str(text))
        seen = trees(folder) if folder else [Tree()]
    except OSError as error:
        raise BadInput(f"CONFIG: {config}: {error.strerror}") from None
    except (ValueError, yaml.YAMLError) as error:
        raise BadInput(f"CONFIG: {config}: {error}") from None
    nodes: dict[str, Any] = {}
    for one in seen:
        found = made(stated, candidates(one))
        nodes[one.name] = {"resources": found.amounts, "nics": found.resources}
        problems += [f"{one.name}: {words}" for words in found.problems]
    return {"nodes": nodes, "problems": problems}


async def rails_of(session: Session) -> list[Rail]:
    """Return the rails of the Topology.

    Raises:
        BadInput: when it states none.
    """
    topology = await session.find(TOPOLOGIES, "default")
    if topology is None or not topology.spec.rails:
        raise BadInput("the Topology 'default' states no rails")
    return topology.spec.rails


def attachments(
    rails: list[Rail], namespace: str, type_: str, resource: str
) -> list[dict[str, Any]]:
    """Return a NetworkAttachmentDefinition for each rail.

    Raises:
        BadInput: when a rail does not say enough.
    """
    try:
        return multus.definitions(rails, namespace, type_, resource)
    except ValueError as error:
        raise BadInput(str(error)) from None


async def plan(session: Session, job: str, *, apply: bool) -> dict[str, Any]:
    """Return the plan for the pods of *job*; with *apply* it is written to their nodes.

    Raises:
        BadInput: when no plan is possible.
        CommandFailed: when the job has no pods on nodes.
    """
    selector = f"{JOB_LABEL}={job}"
    own = (await session.client.list(PODS, session.namespace, label_selector=selector)).items
    placed = sorted((p for p in own if p.spec.node_name), key=lambda p: p.metadata.name)
    if not placed:
        raise CommandFailed(f"no pod of the job {job!r} is on a node")
    try:
        found = await planning.plan(session.client, placed, apply=apply)
    except NotFound:
        raise BadInput("there is no Topology 'default'; its rails are what is planned") from None
    except ValueError as error:
        raise BadInput(str(error)) from None
    return {
        one.metadata.name: {
            "node": one.spec.node_name,
            "addresses": to_builtins(found.members[str(one.metadata.uid)]),
        }
        for one in placed
    }


def write_down(folder: Path) -> str:
    """Record this machine's tree; return what was done.

    Raises:
        BadInput: when the folder cannot be used.
    """
    try:
        count = record(folder)
    except ValueError as error:
        raise BadInput(f"--record: {error}") from None
    except OSError as error:
        raise CommandFailed(f"--record: {folder}: {error.strerror}") from None
    return f"{count} files in {folder}; `lockstep network check --tree {folder}` reads them"


def judged(folder: Path | None, rails: Sequence[Rail]) -> dict[str, Any]:
    """Return checks and verdict about recorded trees, or about this machine without a folder.

    Raises:
        BadInput: when there is no tree in it.
    """
    try:
        seen = [about(one, rails) for one in (trees(folder) if folder else [Tree()])]
        found = checks(seen)
        matrix = folder / "matrix.json" if folder else None
        if matrix is not None and matrix.is_file():
            found += recorded_matrix(matrix.read_text(errors="replace"))
    except ValueError as error:
        raise BadInput(f"--tree: {error}") from None
    return {"checks": whole(found), "verdict": filled(verdict(found))}
