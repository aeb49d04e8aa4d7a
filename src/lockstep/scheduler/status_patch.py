"""Writing into the status of a gang or a pod what no newer writer has written over."""

from __future__ import annotations

from msgspec.structs import replace

from lockstep.api.core import PODS
from lockstep.api.gang import GANGS, Gang
from lockstep.api.meta import ObjectMeta
from lockstep.api.wire import Json
from lockstep.kube.client import Client, Patch
from lockstep.runtime.status import patch_status
from lockstep.scheduler.core.model.workload import Member, WorkloadKey
from lockstep.scheduler.core.state.cluster import Cluster


async def write(client: Client, cluster: Cluster, seen: Gang, status: Json) -> None:
    """Merge into a gang's status, if the gang is still as it was *seen*.

    What a leader wrote may arrive late, after its successor has written something newer.

    Raises:
        Conflict: when the gang has changed since.
        ApiError: when the server refuses it for another reason.
    """
    meta = seen.metadata
    written = await patch_status(client, GANGS, meta, status, seen=bool(meta.resource_version))
    workload = cluster.workloads.get(WorkloadKey("Gang", meta.namespace, meta.name))
    known = workload.gang if workload is not None else None
    # A server whose CRD is older drops fields; what changed nothing must not be news again.
    if known is not None and known.metadata.resource_version != written.metadata.resource_version:
        cluster.set_gang(written)


async def write_pod(client: Client, member: Member, status: Json, *, seen: bool = False) -> None:
    """Merge into the status of this very pod, and not of a new one of the same name.

    With *seen* only while the pod is the version that is known of it, if any is.

    Raises:
        Conflict: when it has changed since, or is another pod.
        ApiError: when the server refuses it for another reason.
    """
    meta = ObjectMeta(name=member.name, namespace=member.namespace, uid=member.uid)
    if seen and member.version:
        meta = replace(meta, resource_version=str(member.version))
    how = Patch.STRATEGIC
    await patch_status(client, PODS, meta, status, seen=bool(meta.resource_version), how=how)
