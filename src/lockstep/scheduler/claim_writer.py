"""Writes the devices that were decided on onto claims, before their pods get their nodes."""

from __future__ import annotations

from lockstep.api.claims import FINALIZER, RESOURCE_CLAIMS, ResourceClaim
from lockstep.api.wire import Json, to_builtins
from lockstep.kube.client import Client
from lockstep.kube.errors import Conflict, NotFound
from lockstep.runtime.status import patch_status
from lockstep.scheduler.core.model.workload import Member
from lockstep.scheduler.core.state.cluster import Cluster
from lockstep.scheduler.core.state.device_use import Written

TRIES = 5
"""Writes of others that one claim is read again for."""


class Taken(Exception):
    """A claim is gone, or has other devices by now."""


class ClaimWriter:
    """Writes claims; to write one again changes nothing."""

    def __init__(self, client: Client, cluster: Cluster) -> None:
        self._client, self._cluster = client, cluster

    async def write(self, member: Member) -> None:
        """Give a pod its claims' devices.

        Raises:
            Taken: when a claim is gone, or has other devices by now.
            ApiError: when the server does not take it.
        """
        for one in self._cluster.device_claims.claims.decided(member.key):
            try:
                await self._write(one, member.name, member.uid)
            except NotFound:
                raise Taken(f"ResourceClaim {one.claim.metadata.name} is gone") from None

    async def _write(self, one: Written, pod: str, uid: str) -> None:
        meta = one.claim.metadata
        for _ in range(TRIES):
            claim = await self._client.get(RESOURCE_CLAIMS, meta.name, meta.namespace)
            if claim.metadata.uid != meta.uid:
                raise Taken(f"ResourceClaim {meta.name} is another one by now")
            try:
                await self._once(one, claim, pod, uid)
            except Conflict:
                continue
            return
        raise Taken(f"ResourceClaim {meta.name} is written by others all the time")

    async def _once(self, one: Written, claim: ResourceClaim, pod: str, uid: str) -> None:
        users = [to_builtins(user) for user in claim.status.reserved_for if user.uid != uid]
        has = claim.status.allocation
        if one.allocation is None and has is None:
            raise Taken(f"ResourceClaim {claim.metadata.name} has lost its devices")
        if one.allocation is not None and has is not None and has != one.allocation:
            if users:
                raise Taken(f"ResourceClaim {claim.metadata.name} has other devices by now")
            # Of a start that never came about. The server takes a new allocation after none alone.
            claim = await self._patch(claim, {"allocation": None, "reservedFor": None})
        if FINALIZER not in claim.metadata.finalizers:
            kept = [*claim.metadata.finalizers, FINALIZER]
            body = {
                "metadata": {"finalizers": kept, "resourceVersion": claim.metadata.resource_version}
            }
            claim = await self._client.patch(
                RESOURCE_CLAIMS, claim.metadata.name, body, claim.metadata.namespace
            )
        me = {"resource": "pods", "name": pod, "uid": uid}
        status: Json = {"reservedFor": [*users, me]}
        if one.allocation is not None:
            status["allocation"] = to_builtins(one.allocation)
        await self._patch(claim, status)

    async def _patch(self, claim: ResourceClaim, status: Json) -> ResourceClaim:
        return await patch_status(self._client, RESOURCE_CLAIMS, claim.metadata, status, seen=True)
