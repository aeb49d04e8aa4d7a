"""The objects that a new control plane begins with; applying them again changes nothing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Any

from lockstep.api import crd, names
from lockstep.api.core import CRDS, LEASES, NAMESPACES, NODES, PODS, Pod
from lockstep.api.meta import ObjectMeta
from lockstep.api.names import SYSTEM_NAMESPACE
from lockstep.api.node_pool import NODE_POOLS, NodePool
from lockstep.api.presentation import PRESENTATIONS
from lockstep.api.queue import QUEUES, Queue
from lockstep.api.resource import Resource
from lockstep.api.simulated import SIMULATED
from lockstep.api.topology import DEFAULT_TOPOLOGY, TOPOLOGIES
from lockstep.api.wire import to_builtins
from lockstep.cli.failure import CommandFailed
from lockstep.kube.client import Client, Patch
from lockstep.kube.config import ClusterConfig
from lockstep.kube.errors import AlreadyExists, Conflict, NotFound

SERVED_WITHIN = 15.0


async def bootstrap(
    kubeconfig: Path, *, simulated: Collection[str], pools: Collection[NodePool] = ()
) -> None:
    """Apply the CRDs, then create the default queue and, with *simulated* nodes, the topology.

    Simulated nodes and pools of earlier runs other than these are removed.

    Raises:
        CommandFailed: when a kind is not served in time.
    """
    async with Client(ClusterConfig.load(kubeconfig)) as client:
        for manifest in crd.manifests():
            await _apply(client, manifest)
        for shown in PRESENTATIONS:
            await _served(client, shown.resource)
        await _ensure(client, NAMESPACES, _named("v1", "Namespace", SYSTEM_NAMESPACE))
        await _ensure(client, QUEUES, to_builtins(Queue(metadata=ObjectMeta(name="default"))))
        await set_pools(client, pools)
        await remove_unsimulated(client, simulated, {pool.metadata.name for pool in pools})
        if simulated or pools:
            await _ensure(client, TOPOLOGIES, to_builtins(DEFAULT_TOPOLOGY))


async def _apply(client: Client, manifest: dict[str, Any]) -> None:
    try:
        await client.create(CRDS, manifest)
    except AlreadyExists:
        name = manifest["metadata"]["name"]
        await client.patch(CRDS, name, {"spec": manifest["spec"]})


async def _served(client: Client, res: Resource[Any]) -> None:
    end = time.monotonic() + SERVED_WITHIN
    while True:
        try:
            await client.get_raw(res.path(), {"limit": "1"})
            return
        except NotFound:
            if time.monotonic() > end:
                raise CommandFailed(
                    f"the API server does not serve {res.plural}.{res.group}"
                ) from None
            await asyncio.sleep(0.02)


async def _ensure(client: Client, res: Resource[Any], obj: dict[str, Any]) -> None:
    try:
        await client.create(res, obj)
    except AlreadyExists:
        return


def _named(api_version: str, kind: str, name: str) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}}


MAKER_LABEL = "app.kubernetes.io/managed-by"
MAKER = "lockstep-up"


async def set_pools(client: Client, pools: Collection[NodePool]) -> None:
    """Make or change the pools that are asked for; delete those that an earlier run made."""
    wanted = {pool.metadata.name for pool in pools}
    listing = await client.list(NODE_POOLS, label_selector=f"{MAKER_LABEL}={MAKER}")
    for pool in listing.items:
        if pool.metadata.name not in wanted:
            with suppress(NotFound):
                await client.delete(NODE_POOLS, pool.metadata.name)
    for pool in pools:
        tree = to_builtins(pool)
        tree["metadata"]["labels"] = {MAKER_LABEL: MAKER}
        try:
            await client.create(NODE_POOLS, tree)
        except AlreadyExists:
            known = await client.get(NODE_POOLS, pool.metadata.name)
            version = known.metadata.resource_version
            body = {"metadata": {"resourceVersion": version}, "spec": _over(known, tree["spec"])}
            await client.patch(NODE_POOLS, pool.metadata.name, body)


def _over(known: NodePool, spec: dict[str, object]) -> dict[str, object]:
    """Return the merge patch that leaves nothing of the earlier spec."""
    return {**dict.fromkeys(to_builtins(known.spec)), **spec}


LEASE_NAMESPACE = "kube-node-lease"


async def remove_unsimulated(
    client: Client, kept: Collection[str], pools: Collection[str] = ()
) -> int:
    """Remove the simulated nodes that are not *kept*, and end their pods; return how many.

    Nodes of *pools* stay.

    Nothing schedules yet, so that no pod comes to a node that goes. The pods stay, as disrupted:
    their jobs replace them and do not take it for a failure of their own.
    """
    listed = await client.list(NODES, label_selector=f"{names.NODE_KIND_LABEL}={SIMULATED}")
    ours = [n for n in listed.items if n.metadata.labels.get(names.POOL_LABEL) not in pools]
    going = {node.metadata.name for node in ours} - set(kept)
    if not going:
        return 0
    for pod in (await client.list(PODS)).items:
        if pod.spec.node_name in going:
            with suppress(NotFound, Conflict):
                await _end(client, pod)
    for name in sorted(going):
        with suppress(NotFound):
            await client.delete(NODES, name)
        with suppress(NotFound):
            await client.delete(LEASES, name, LEASE_NAMESPACE)
    return len(going)


async def _end(client: Client, pod: Pod) -> None:
    meta = pod.metadata
    if pod.status.phase not in ("Succeeded", "Failed"):
        why = f"node {pod.spec.node_name} is no longer simulated"
        condition = {"type": "DisruptionTarget", "status": "True", "reason": "NodeRemoved"}
        status = {"phase": "Failed", "conditions": [{**condition, "message": why}]}
        patch = {"metadata": {"uid": meta.uid}, "status": status}
        where = (PODS, meta.name, patch, meta.namespace)
        await client.patch(*where, how=Patch.STRATEGIC, subresource="status")
    if meta.deletion_timestamp is not None:
        await client.delete(PODS, meta.name, meta.namespace, grace_seconds=0, uid=meta.uid)
