"""Writing to nodes and gangs what pools decided about them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterable, Mapping
from typing import Any

from lockstep.api import timestamp
from lockstep.api.core import NODES, PODS, Node, Pod
from lockstep.api.gang import GANGS, Gang, Provision
from lockstep.api.names import HELD_TAINT, IDLE_ANNOTATION, LEAVING_ANNOTATION, RECLAIM_TAINT
from lockstep.api.wire import to_builtins
from lockstep.kube.client import Client, Patch
from lockstep.kube.errors import Conflict, Invalid, NotFound, TooManyRequests
from lockstep.pools.core.adoption import Adoption
from lockstep.pools.core.pool import Pool
from lockstep.pools.core.shrinking import Shrinkage
from lockstep.pools.scheduler_view import occupies
from lockstep.runtime.status import patch_status

log = logging.getLogger(__name__)

PARALLEL = 16


class Upkeep:
    """Patches; each is guarded by the version that was looked at, and comes again if it fails."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._slots = asyncio.Semaphore(PARALLEL)

    async def adopt(self, pool: Pool, found: Iterable[Adoption]) -> None:
        """Make nodes the pool's.

        Raises:
            Conflict: when a node has changed meanwhile. The look is then made again: were the node
                taken for the pool's, its request could end, and the node would belong to no pool.
        """
        for one in found:
            meta = one.node.metadata
            with contextlib.suppress(NotFound):
                await self._client.patch(NODES, meta.name, one.patch(pool))

    async def unhold(self, nodes: Iterable[Node]) -> None:
        """Let everybody use nodes that were held."""
        for node in nodes:
            taints = [taint for taint in node.spec.taints if taint.key != HELD_TAINT]
            await self._node(node, {"spec": {"taints": to_builtins(taints)}})

    async def announce(self, node: Node) -> None:
        """Say that a node goes: no pod comes any more, and those on it leave as for a cloud."""
        taint = {"key": RECLAIM_TAINT, "value": "emptied", "effect": "NoSchedule"}
        taints = [*to_builtins(node.spec.taints), taint]
        await self._node(node, {"spec": {"taints": taints}})

    async def shrink(self, found: Shrinkage, now: float) -> None:
        """Note down what is idle, cordon what leaves, uncordon what stays."""
        stamp = timestamp.show(now)
        for node in found.idle:
            await self._node(node, _annotated({IDLE_ANNOTATION: stamp}))
        for node in found.used:
            await self._node(node, _annotated({IDLE_ANNOTATION: None}))
        for node in found.leave:
            body = _annotated({LEAVING_ANNOTATION: stamp})
            await self._node(node, {**body, "spec": {"unschedulable": True}})
        for node in found.stay:
            body = _annotated({LEAVING_ANNOTATION: None, IDLE_ANNOTATION: None})
            await self._node(node, {**body, "spec": {"unschedulable": None}})

    async def clear(self, pods: Iterable[Pod]) -> None:
        """Ask pods to leave a node that goes, within their budgets: they save and end."""
        for pod in pods:
            meta = pod.metadata
            if meta.deletion_timestamp is not None:
                continue
            try:
                await self._client.evict(meta.namespace, meta.name)
            except (Conflict, NotFound, TooManyRequests) as error:
                log.warning("pod %s/%s cannot leave yet: %s", meta.namespace, meta.name, error)

    async def empty(self, node: str) -> bool:
        """Ask the server whether no pod that could run is on a node; what is cached may be old."""
        listing = await self._client.list(PODS, field_selector=f"spec.nodeName={node}")
        return not any(occupies(pod) for pod in listing.items)

    async def admit(self, pods: Iterable[Pod], requests: set[str]) -> None:
        """Let pods that wait go to nodes that are held for them."""
        wanted = sorted(requests)
        lacking = [
            (pod, missing)
            for pod in pods
            if not pod.spec.node_name
            and (missing := [one for one in wanted if not _tolerates(pod, one)])
        ]
        await asyncio.gather(*(self._tolerate(pod, missing) for pod, missing in lacking))

    async def _tolerate(self, pod: Pod, requests: list[str]) -> None:
        more = [
            {"key": HELD_TAINT, "operator": "Equal", "value": one, "effect": "NoSchedule"}
            for one in requests
        ]
        meta = pod.metadata
        # Not a merge of the whole list: written as read, what is there would not be quite the same.
        where = "/spec/tolerations"
        body: list[dict[str, Any]] = [
            {"op": "test", "path": "/metadata/resourceVersion", "value": meta.resource_version}
        ]
        if pod.spec.tolerations:
            body += [{"op": "add", "path": f"{where}/-", "value": one} for one in more]
        else:
            body.append({"op": "add", "path": where, "value": more})
        async with self._slots:
            try:
                await self._client.patch(PODS, meta.name, body, meta.namespace, how=Patch.JSON)
            except (Conflict, Invalid, NotFound):
                log.debug("pod %s/%s has changed meanwhile", meta.namespace, meta.name)

    async def tell(self, gang: Gang, provision: Provision | None) -> None:
        """Write into a gang's status what pools do for it."""
        told = to_builtins(provision) if provision is not None else None
        if told is not None:
            before = to_builtins(gang.status.provision) if gang.status.provision else {}
            told = {**dict.fromkeys(before), **told}
            pools = told.get("pools") or {}
            told["pools"] = {**dict.fromkeys(before.get("pools") or {}), **pools} or None
        meta = gang.metadata
        async with self._slots:
            try:
                await patch_status(self._client, GANGS, meta, {"provision": told})
            except (Conflict, NotFound):
                log.debug("gang %s/%s has gone", meta.namespace, meta.name)

    async def _node(self, node: Node, body: dict[str, Any]) -> None:
        meta = node.metadata
        guarded = {
            **body,
            "metadata": {**body.get("metadata", {}), "resourceVersion": meta.resource_version},
        }
        try:
            await self._client.patch(NODES, meta.name, guarded)
        except (Conflict, NotFound):
            log.debug("node %s has changed meanwhile", meta.name)


def _annotated(annotations: Mapping[str, str | None]) -> dict[str, Any]:
    return {"metadata": {"annotations": dict(annotations)}}


def _tolerates(pod: Pod, request: str) -> bool:
    return any(
        one.key == HELD_TAINT and one.operator == "Equal" and one.value == request
        for one in pod.spec.tolerations
    )
