"""Plans addresses for pods, and writes them to the nodes where the agents act on them."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from lockstep.api.core import NODES, PODS, Node, Pod
from lockstep.api.names import NETWORK_ANNOTATION
from lockstep.api.network import Address, NodePlan
from lockstep.api.topology import TOPOLOGIES, Rail
from lockstep.devices.network.core.plan import Plan, Pool, planned, pools
from lockstep.kube.client import Client
from lockstep.kube.errors import Conflict

LAST_ANNOTATION: Final = "lockstep.dev/network-last"
"""On the Topology: the last address that was given of each rail."""
OVER: Final = ("Succeeded", "Failed")


async def plan(client: Client, pods: Sequence[Pod], *, apply: bool, pooled: bool = False) -> Plan:
    """Return addresses for *pods*, which have nodes, by their UIDs; those that hold one keep it.

    With *apply* they are written to their nodes. With *pooled* only the rails count that state a
    pool.

    Raises:
        ValueError: when no plan is possible, naming rail, numbers and remedy.
        NotFound: when there is no Topology ``default``.
        Conflict: when another plan was made meanwhile; nothing is written then.
    """
    topology = await client.get(TOPOLOGIES, "default")
    nodes = {one.metadata.name: one for one in (await client.list(NODES)).items}
    alive = await _alive(client)
    those = pools(topology.spec.rails, pooled=pooled)
    _held(those, nodes.values(), alive)
    _last(those, topology.metadata.annotations.get(LAST_ANNOTATION, ""))
    found = planned([str(one.metadata.uid) for one in pods], those)
    if not apply:
        return found
    # The marks go first and only from the version that was read: two plans at once cannot give an
    # address twice, and one that ends here wastes some at most.
    marks = _marks(topology.metadata.annotations.get(LAST_ANNOTATION, "")) | dict(found.last)
    meta: dict[str, Any] = {"resourceVersion": topology.metadata.resource_version}
    meta["annotations"] = {LAST_ANNOTATION: json.dumps(marks)}
    await client.patch(TOPOLOGIES, "default", {"metadata": meta})
    for name in sorted({str(one.spec.node_name) for one in pods}):
        own = [str(one.metadata.uid) for one in pods if one.spec.node_name == name]
        here = {uid: found.members[uid] for uid in own}
        await _write(client, name, alive, here, topology.spec.rails)
    return found


async def forget(client: Client, node: str) -> None:
    """Take what is planned for pods that are gone off a node."""
    await _write(client, node, await _alive(client), {}, None)


def node_plan(node: Node) -> NodePlan:
    """Return what is planned on a node.

    Raises:
        ValueError: when that cannot be read.
    """
    text = node.metadata.annotations.get(NETWORK_ANNOTATION, "")
    try:
        return msgspec.json.decode(text, type=NodePlan) if text else NodePlan()
    except msgspec.MsgspecError as error:
        raise ValueError(f"node {node.metadata.name}: {NETWORK_ANNOTATION}: {error}") from None


async def _alive(client: Client) -> set[str]:
    every = (await client.list(PODS, None)).items
    return {str(one.metadata.uid) for one in every if one.status.phase not in OVER}


def _held(those: list[Pool], nodes: Iterable[Node], alive: set[str]) -> None:
    by_rail = {pool.rail.name: pool for pool in those}
    for node in nodes:
        for uid, addresses in node_plan(node).pods.items():
            for one in addresses if uid in alive else ():
                if one.rail in by_rail:
                    number = int(ipaddress.ip_interface(one.address).ip)
                    by_rail[one.rail].held[number] = uid


def _marks(text: str) -> dict[str, int]:
    try:
        marks = json.loads(text or "{}")
    except ValueError as error:
        raise ValueError(f"Topology default: {LAST_ANNOTATION}: {error}") from None
    known = marks.items() if isinstance(marks, dict) else ()
    return {name: mark for name, mark in known if isinstance(mark, int)}


def _last(those: list[Pool], text: str) -> None:
    marks = _marks(text)
    for pool in those:
        pool.last = marks.get(pool.rail.name, 0)


async def _write(
    client: Client,
    name: str,
    alive: set[str],
    here: Mapping[str, list[Address]],
    rails: list[Rail] | None,
) -> None:
    """Add *here* to what is planned on a node, and forget pods that are gone."""
    while True:
        node = await client.get(NODES, name)
        now = node_plan(node)
        kept = {uid: those for uid, those in now.pods.items() if uid in alive}
        fresh = NodePlan(rails=now.rails if rails is None else rails, pods={**kept, **here})
        if fresh == now:
            return
        meta: dict[str, Any] = {
            "resourceVersion": node.metadata.resource_version,
            "annotations": {NETWORK_ANNOTATION: msgspec.json.encode(fresh).decode()},
        }
        try:
            await client.patch(NODES, name, {"metadata": meta})
        except Conflict:
            continue
        return
