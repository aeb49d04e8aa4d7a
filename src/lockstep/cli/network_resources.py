"""What device plugins' ConfigMaps make of a node's NICs, and attachments of rails for Multus."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lockstep.api.topology import TOPOLOGIES, Rail
from lockstep.cli.connect import Session
from lockstep.cli.failure import BadInput
from lockstep.compat import multus
from lockstep.compat.nic_plugins import made, read
from lockstep.devices.network.candidates import candidates
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
    try:
        rails = (await session.client.get(TOPOLOGIES, "default")).spec.rails
    except NotFound:
        rails = []
    if not rails:
        raise BadInput("the Topology 'default' states no rails")
    return rails


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
