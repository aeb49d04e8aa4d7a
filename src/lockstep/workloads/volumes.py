"""Volumes of the one machine: each claim of the class ``local-path`` gets its own directory."""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lockstep.api.core import CLAIMS, PODS, VOLUMES, AnyObject
from lockstep.api.resource import Resource
from lockstep.kube.client import Client
from lockstep.kube.errors import AlreadyExists, NotFound
from lockstep.kube.informer import Informer
from lockstep.runtime.actions import Change, Create, Delete
from lockstep.runtime.controller import Controller, Key
from lockstep.runtime.execution import execute
from lockstep.runtime.manager import Manager

log = logging.getLogger(__name__)


CLASS: Final = "local-path"
PROVISIONER: Final = "lockstep.dev/local-path"
_ASK_AGAIN: Final = 5.0
"""Seconds until a volume is looked at again whose claim is gone and that a pod still mounts."""
_PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
_DEFAULT: Final = {"storageclass.kubernetes.io/is-default-class": "true"}
STORAGE_CLASSES: Final = Resource(
    "storage.k8s.io", "v1", "storageclasses", "StorageClass", False, AnyObject
)


@dataclass
class LocalVolumes:
    """Gives each claim of the class a directory below *place*, and takes it back with the claim."""

    client: Client
    claims: Informer[AnyObject]
    volumes: Informer[AnyObject]
    place: Path
    _has_class: bool = False

    async def reconcile(self, key: Key) -> float | None:
        """Bind the claim at *key*, or clear up behind it; return when to look again.

        Raises:
            ApiError: when the server cannot be used now; the caller tries again later.
        """
        await self._ensure_class()
        claim = self.claims.get(*key)
        if claim is not None and _ours(claim) and claim.status.get("phase") != "Bound":
            await self._bind(claim)
        left = [one for one in self.volumes if _of(one) == key and not _is_for(one, claim)]
        if not left:
            return None
        if await self._is_used(key):
            return _ASK_AGAIN
        for volume in left:
            await self._remove(volume)
        return None

    async def _is_used(self, key: Key) -> bool:
        """Tell whether the claim at *key* is there after all, or a pod still mounts it."""
        space, name = key
        pods = (await self.client.list(PODS, space)).items
        mounting = [one for one in pods if any(v.claim == name for v in one.spec.volumes)]
        if any(one.status.phase not in ("Succeeded", "Failed") for one in mounting):
            return True
        try:
            found = await self.client.get(CLAIMS, name, space)
        except NotFound:
            return False
        return self.claims.get(*key) is None or found.metadata.deletion_timestamp is not None

    async def _ensure_class(self) -> None:
        if self._has_class:
            return
        body = {"metadata": {"name": CLASS, "annotations": _DEFAULT}, "provisioner": PROVISIONER}
        try:
            await self.client.create(STORAGE_CLASSES, body)
        except AlreadyExists:
            log.debug("the class %s is there already", CLASS)
        self._has_class = True

    async def _bind(self, claim: AnyObject) -> None:
        meta, size = claim.metadata, (claim.spec.get("resources") or {}).get("requests")
        name, modes = _name(claim), claim.spec.get("accessModes")
        where = self.place / meta.namespace / f"{meta.name}-{meta.uid}"
        where.parent.mkdir(parents=True, exist_ok=True)
        where.mkdir(exist_ok=True)
        where.chmod(0o777)  # pods of any user write to it
        spec = {
            "accessModes": modes,
            "capacity": size,
            "claimRef": {"namespace": meta.namespace, "name": meta.name, "uid": meta.uid},
            "hostPath": {"path": str(where)},
            "persistentVolumeReclaimPolicy": "Delete",
            "storageClassName": CLASS,
        }
        about = {"name": name, "annotations": {_PROVISIONED_BY: PROVISIONER}}
        status = {"status": {"phase": "Bound", "accessModes": modes, "capacity": size}}
        space = meta.namespace
        for action in (
            Create(VOLUMES, {"metadata": about, "spec": spec}),
            Change(VOLUMES, name, {"status": {"phase": "Bound"}}, subresource="status"),
            Change(CLAIMS, meta.name, {"spec": {"volumeName": name}}, space),
            Change(CLAIMS, meta.name, status, space, "status"),
        ):
            refused = await execute(self.client, action, space if action.namespace else "")
            if refused is not None:
                log.warning("the claim %s/%s cannot be bound: %s", space, meta.name, refused)
                return

    async def _remove(self, volume: AnyObject) -> None:
        where = Path(str((volume.spec.get("hostPath") or {}).get("path", "")))
        if where.parent.parent == self.place:
            await asyncio.to_thread(shutil.rmtree, where, ignore_errors=True)
        await execute(self.client, Delete.of(VOLUMES, volume.metadata))


def _ours(claim: AnyObject) -> bool:
    """Tell whether *claim* asks for the class, or for the default one."""
    wanted = claim.spec.get("storageClassName", CLASS)
    going = claim.metadata.deletion_timestamp is None
    given = claim.spec.get("volumeName") or _name(claim)
    return bool(wanted == CLASS and given == _name(claim) and going)


def _name(claim: AnyObject) -> str:
    return f"pvc-{claim.metadata.uid}"


def _of(volume: AnyObject) -> Key | None:
    """Return the claim that a volume of the class is for; none of another volume."""
    if volume.metadata.annotations.get(_PROVISIONED_BY) != PROVISIONER:
        return None
    claim = volume.spec.get("claimRef") or {}
    return claim.get("namespace", ""), claim.get("name", "")


def _is_for(volume: AnyObject, claim: AnyObject | None) -> bool:
    return claim is not None and volume.metadata.name == _name(claim)


def add_local_volumes(manager: Manager, place: Path) -> None:
    """Serve claims from directories below *place* while *manager* leads."""
    claims, volumes = manager.informer(CLAIMS), manager.informer(VOLUMES)
    shell = LocalVolumes(manager.client, claims, volumes, place)
    controller = Controller("local-volumes", shell.reconcile, workers=2)
    controller.follow(claims)
    controller.follow(volumes, _keys)
    manager.add(controller)


def _keys(volume: AnyObject) -> Iterable[Key]:
    found = _of(volume)
    return [found] if found is not None else []
