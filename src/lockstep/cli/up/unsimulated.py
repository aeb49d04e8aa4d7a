"""Removing the simulated nodes of earlier runs that nobody simulates any more."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress

from lockstep.api import names
from lockstep.api.core import LEASES, NODES, PODS, Pod
from lockstep.api.simulated import SIMULATED
from lockstep.kube.client import Client, Patch
from lockstep.kube.errors import Conflict, NotFound

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
