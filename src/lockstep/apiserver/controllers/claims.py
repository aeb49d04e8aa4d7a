"""What a controller manager does for device claims: makes them from templates, and frees them.

A claim that is made for a pod has a name that follows from the pod's identity, so that a server
that was killed in between makes no second one.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Sequence
from typing import Any, Final

from lockstep.api.wire import Json
from lockstep.apiserver.deletion import Deletion
from lockstep.apiserver.objects import Objects, WriteOptions
from lockstep.apiserver.status import StatusError
from lockstep.apiserver.store import Event, Key, StoreUnavailable

logger = logging.getLogger(__name__)


_CLAIMS: Final = "resourceclaims.resource.k8s.io"
_TEMPLATES: Final = "resourceclaimtemplates.resource.k8s.io"
_GROUP: Final = "resource.k8s.io"
_FINALIZER: Final = "resource.kubernetes.io/delete-protection"
_STATUSES: Final = "resourceClaimStatuses"
_MADE_FOR: Final = "resource.kubernetes.io/pod-claim-name"
_OPTIONS: Final = WriteOptions(manager="lockstep-apiserver", validation="Ignore")
_RETRY_SECONDS: Final = 1.0


class DeviceClaims:
    """Follows pods, claims and templates."""

    def __init__(self, objects: Objects) -> None:
        self._objects, self._store = objects, objects.store
        self._pods: set[Key] = set()
        self._claims: set[Key] = set()
        self._wake = asyncio.Event()

    def start(self) -> asyncio.Task[None]:
        """Look at everything once and follow; the task runs until it is cancelled."""
        self._pods.update(record.key for record in self._store.objects("pods"))
        self._claims.update(record.key for record in self._store.objects(_CLAIMS))
        self._store.subscribe(self._follow)
        self._wake.set()
        return asyncio.get_running_loop().create_task(self._run(), name="device-claims")

    def _follow(self, events: Sequence[Event]) -> None:
        for event in events:
            key = event.record.key
            if key.resource == "pods":
                self._pods.add(key)
            elif key.resource == _CLAIMS:
                self._claims.add(key)
            elif key.resource == _TEMPLATES:
                waiting = self._store.objects("pods", key.namespace)
                self._pods.update(record.key for record in waiting)
            else:
                continue
            self._wake.set()

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            await self.tidy()

    async def tidy(self) -> None:
        """Do all that is due now."""
        pods, self._pods = self._pods, set()
        for key in pods:
            await self._try(key, self._see_pod, self._pods)
        claims, self._claims = self._claims, set()
        for key in claims:
            await self._try(key, self._see_claim, self._claims)

    async def _try(self, key: Key, see: Any, again: set[Key]) -> None:
        try:
            await see(key)
        except (StatusError, StoreUnavailable) as error:
            if isinstance(error, StatusError) and error.code == 404:
                return  # it went in between
            logger.warning("device claims of %s/%s: %s", key.namespace, key.name, error)
            again.add(key)
            asyncio.get_running_loop().call_later(_RETRY_SECONDS, self._wake.set)

    # --- pods ---

    async def _see_pod(self, key: Key) -> None:
        record = self._store.newest(key)
        pod = record.object() if record is not None else None
        wanted = (pod.get("spec") or {}).get("resourceClaims") if pod else None
        if pod is None or not wanted:
            if pod is None:  # its claims may be free now
                self._claims.update(r.key for r in self._store.objects(_CLAIMS, key.namespace))
            return
        if _over(pod):
            self._claims.update(r.key for r in self._store.objects(_CLAIMS, key.namespace))
            return
        told = {one["name"]: one for one in (pod.get("status") or {}).get(_STATUSES) or ()}
        made = dict(told)
        for one in wanted:
            template = one.get("resourceClaimTemplateName")
            if template and one["name"] not in told:
                name = await self._make(pod, one["name"], template)
                if name:
                    made[one["name"]] = {"name": one["name"], "resourceClaimName": name}
        if made != told:
            await self._tell(key, pod["metadata"]["uid"], list(made.values()))

    async def _make(self, pod: Json, name: str, template: str) -> str:
        """Make a pod's claim from a template; return its name, empty without such a template."""
        meta = pod["metadata"]
        found = self._store.newest(Key(_TEMPLATES, meta["namespace"], template))
        if found is None:
            return ""
        given = found.object()["spec"]
        wish = given.get("metadata") or {}
        owner = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"]}
        own = _claim_name(meta["name"], name, meta["uid"])
        claim = {
            "apiVersion": f"{_GROUP}/v1",
            "kind": "ResourceClaim",
            "metadata": {
                "name": own,
                "namespace": meta["namespace"],
                "labels": dict(wish.get("labels") or {}),
                "annotations": {**(wish.get("annotations") or {}), _MADE_FOR: name},
                "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
            },
            "spec": given["spec"],
        }
        served = self._objects.catalog.find(_GROUP, "v1", "resourceclaims")
        if served is None:
            return ""
        if self._store.newest(Key(_CLAIMS, meta["namespace"], own)) is None:
            await self._objects.create(served, meta["namespace"], claim, _OPTIONS)
        return own

    async def _tell(self, key: Key, uid: str, made: list[Json]) -> None:
        served = self._objects.catalog.find("", "v1", "pods")

        def mutate(pod: Json) -> Json:
            if pod["metadata"]["uid"] != uid:
                return pod
            return {**pod, "status": {**(pod.get("status") or {}), _STATUSES: made}}

        if served is not None:
            await self._objects.change(
                served, key.namespace, key.name, mutate, _OPTIONS, subresource="status"
            )

    # --- claims ---

    async def _see_claim(self, key: Key) -> None:
        record = self._store.newest(key)
        served = self._objects.catalog.find(_GROUP, "v1", "resourceclaims")
        if record is None or served is None:
            return
        claim = record.object()
        status = claim.get("status") or {}
        users = status.get("reservedFor") or []
        left = [one for one in users if self._uses(key.namespace, one)]
        if left != users:
            await self._objects.change(
                served,
                *key[1:],
                lambda one: _reserved(one, users, left),
                _OPTIONS,
                subresource="status",
            )
        deleted = claim["metadata"].get("deletionTimestamp")
        protected = _FINALIZER in (claim["metadata"].get("finalizers") or ())
        if not left and (users or deleted) and protected:
            await self._objects.change(served, *key[1:], _unprotected, _OPTIONS)
        if not left and self._outlived(claim) and not deleted:
            await self._objects.delete(served, *key[1:], Deletion(uid=claim["metadata"]["uid"]))

    def _uses(self, namespace: str, user: Json) -> bool:
        """Return whether a user of a claim is a pod that has not ended."""
        if user.get("resource") != "pods" or user.get("apiGroup"):
            return True
        found = self._store.newest(Key("pods", namespace, user["name"]))
        pod = found.object() if found is not None else None
        return pod is not None and pod["metadata"]["uid"] == user["uid"] and not _over(pod)

    def _outlived(self, claim: Json) -> bool:
        """Return whether a claim was made for one pod, which has ended."""
        meta = claim["metadata"]
        if _MADE_FOR not in (meta.get("annotations") or {}):
            return False
        owner = next(iter(meta.get("ownerReferences") or ()), None)
        if owner is None:
            return False
        found = self._store.newest(Key("pods", meta["namespace"], owner["name"]))
        return found is not None and found.meta.uid == owner["uid"] and _over(found.object())


def _over(pod: Json) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def _claim_name(pod: str, name: str, uid: str) -> str:
    digest = hashlib.sha256(f"{uid}/{name}".encode()).hexdigest()[:5]
    return f"{f'{pod}-{name}'[:247]}-{digest}"


def _reserved(claim: Json, before: list[Json], left: list[Json]) -> Json:
    """Return a claim for the users that are left; without any its devices are free again."""
    status = dict(claim.get("status") or {})
    if (status.get("reservedFor") or []) != before:
        return claim  # it has changed, and is looked at again for that
    status.pop("reservedFor", None)
    if left:
        status["reservedFor"] = left
    else:
        status.pop("allocation", None)
        status.pop("devices", None)
    return {**claim, "status": status}


def _unprotected(claim: Json) -> Json:
    if (claim.get("status") or {}).get("reservedFor"):
        return claim
    meta = dict(claim["metadata"])
    meta["finalizers"] = [one for one in meta.get("finalizers", ()) if one != _FINALIZER]
    return {**claim, "metadata": meta}
