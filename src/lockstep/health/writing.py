"""Writes findings into the NodeHealth of a node."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection, Iterable

from lockstep.api.core import NODES
from lockstep.api.node_health import NODE_HEALTHS, Finding, NodeHealth
from lockstep.api.timestamp import show
from lockstep.api.wire import Json, to_builtins
from lockstep.health.core.findings import Key, key, merged
from lockstep.kube.client import Client
from lockstep.kube.errors import AlreadyExists, NotFound


async def load(client: Client, node: str) -> NodeHealth:
    """Return the NodeHealth of *node*; it is made where there is none.

    Raises:
        NotFound: when there is no such node.
        ApiError: when the server cannot be used now.
    """
    try:
        return await client.get(NODE_HEALTHS, node)
    except NotFound:
        owner = await client.get(NODES, node)
    reference = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": owner.metadata.uid}
    body = {"metadata": {"name": node, "ownerReferences": [reference]}, "spec": {}}
    with contextlib.suppress(AlreadyExists):
        return await client.create(NODE_HEALTHS, body)
    return await client.get(NODE_HEALTHS, node)


async def add(
    client: Client,
    node: str,
    fresh: Iterable[Finding],
    read: str | None = None,
    over: Collection[Key] = (),
) -> None:
    """Add *fresh* findings, and up to where the log was *read* if that is told, in one write.

    Findings that are *over* are taken away, by cause and device.

    What others changed meanwhile stays: the write is for the version that was read alone.

    Raises:
        Conflict: when another client wrote first; call again.
        ApiError: when the server cannot be used now.
    """
    there = await load(client, node)
    kept = [one for one in there.spec.findings if key(one) not in over]
    findings = merged(kept, fresh, show(time.time()))
    await put(client, there, findings, there.spec.read if read is None else read)


async def put(client: Client, there: NodeHealth, findings: list[Finding], read: str = "") -> None:
    """Write all findings of a node, where they are others than *there*."""
    if findings == there.spec.findings and read == there.spec.read:
        return
    body: Json = {
        "metadata": {"resourceVersion": there.metadata.resource_version},
        "spec": {"findings": to_builtins(findings), "read": read},
    }
    await client.patch(NODE_HEALTHS, there.metadata.name, body)
