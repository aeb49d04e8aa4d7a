"""Plans addresses for a job's pods, and writes them to the nodes where the agents act on them."""

from __future__ import annotations

import ipaddress
import json
from typing import Any

import msgspec

from lockstep.api.core import NODES, PODS, Node
from lockstep.api.names import JOB_LABEL, NETWORK_ANNOTATION
from lockstep.api.network import Address, NodePlan
from lockstep.api.topology import TOPOLOGIES, Rail
from lockstep.api.wire import to_builtins
from lockstep.cli.connect import Session
from lockstep.cli.failure import BadInput, CommandFailed
from lockstep.devices.network.core.plan import Pool, planned, pools
from lockstep.kube.errors import Conflict, NotFound

LAST_ANNOTATION = "lockstep.dev/network-last"
"""On the Topology: the last address that was given of each rail."""


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
        topology = await session.client.get(TOPOLOGIES, "default")
    except NotFound:
        raise BadInput("there is no Topology 'default'; its rails are what is planned") from None
    rails = topology.spec.rails
    nodes = {one.metadata.name: one for one in (await session.client.list(NODES)).items}
    every = (await session.client.list(PODS, None)).items
    alive = {one.metadata.uid for one in every if one.status.phase not in ("Succeeded", "Failed")}
    try:
        those = pools(rails)
        _held(those, nodes, alive)
        _last(those, topology.metadata.annotations.get(LAST_ANNOTATION, ""))
        found = planned([str(one.metadata.uid) for one in placed], those)
    except ValueError as error:
        raise BadInput(str(error)) from None
    if apply:
        # The marks go first and only from the version that was read: two plans at once cannot
        # give an address twice, and one that ends here wastes some at most.
        meta: dict[str, Any] = {"resourceVersion": topology.metadata.resource_version}
        meta["annotations"] = {LAST_ANNOTATION: json.dumps(dict(found.last))}
        await session.client.patch(TOPOLOGIES, "default", {"metadata": meta})
        for name in sorted({str(one.spec.node_name) for one in placed}):
            here = {
                str(pod.metadata.uid): found.members[str(pod.metadata.uid)]
                for pod in placed
                if pod.spec.node_name == name
            }
            await _write(session, name, rails, here, alive)
    return {
        one.metadata.name: {
            "node": one.spec.node_name,
            "addresses": to_builtins(found.members[str(one.metadata.uid)]),
        }
        for one in placed
    }


def node_plan(node: Node) -> NodePlan:
    """Return what is planned on a node; nothing where that cannot be read."""
    text = node.metadata.annotations.get(NETWORK_ANNOTATION, "")
    try:
        return msgspec.json.decode(text, type=NodePlan) if text else NodePlan()
    except msgspec.MsgspecError as error:
        raise ValueError(f"node {node.metadata.name}: {NETWORK_ANNOTATION}: {error}") from None


def _held(those: list[Pool], nodes: dict[str, Node], alive: set[str]) -> None:
    by_rail = {pool.rail.name: pool for pool in those}
    for node in nodes.values():
        for uid, addresses in node_plan(node).pods.items():
            for one in addresses if uid in alive else ():
                if one.rail in by_rail:
                    number = int(ipaddress.ip_interface(one.address).ip)
                    by_rail[one.rail].held[number] = uid


def _last(those: list[Pool], text: str) -> None:
    try:
        marks = json.loads(text or "{}")
    except ValueError as error:
        raise ValueError(f"Topology default: {LAST_ANNOTATION}: {error}") from None
    for pool in those:
        mark = marks.get(pool.rail.name) if isinstance(marks, dict) else None
        pool.last = mark if isinstance(mark, int) else 0


async def _write(
    session: Session, name: str, rails: list[Rail], here: dict[str, list[Address]], alive: set[str]
) -> None:
    """Add *here* to what is planned on a node, and forget pods that are gone."""
    while True:
        node = await session.client.get(NODES, name)
        kept = {uid: those for uid, those in node_plan(node).pods.items() if uid in alive}
        text = msgspec.json.encode(NodePlan(rails=rails, pods=kept | here)).decode()
        meta: dict[str, Any] = {
            "resourceVersion": node.metadata.resource_version,
            "annotations": {NETWORK_ANNOTATION: text},
        }
        try:
            await session.client.patch(NODES, name, {"metadata": meta})
        except Conflict:
            continue
        return
