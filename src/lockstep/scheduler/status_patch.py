"""Writing into the status of a gang what no newer writer has written over."""

from __future__ import annotations

from typing import Any

from lockstep.api.gang import GANGS, Gang
from lockstep.kube.client import Client
from lockstep.scheduler.core.model.workload import WorkloadKey
from lockstep.scheduler.core.state.cluster import Cluster


async def write(client: Client, cluster: Cluster, seen: Gang, status: dict[str, Any]) -> None:
    """Merge into a gang's status, if the gang is still as it was *seen*.

    What a leader wrote may arrive late, after its successor has written something newer.

    Raises:
        Conflict: when the gang has changed since.
        ApiError: when the server refuses it for another reason.
    """
    meta = seen.metadata
    body: dict[str, Any] = {"status": status}
    if meta.resource_version:
        body["metadata"] = {"resourceVersion": meta.resource_version}
    written = await client.patch(GANGS, meta.name, body, meta.namespace, subresource="status")
    workload = cluster.workloads.get(WorkloadKey("Gang", meta.namespace, meta.name))
    known = workload.gang if workload is not None else None
    # A server whose CRD is older drops fields; what changed nothing must not be news again.
    if known is not None and known.metadata.resource_version != written.metadata.resource_version:
        cluster.set_gang(written)
