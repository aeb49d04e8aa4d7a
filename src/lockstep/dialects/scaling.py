"""The controller of objects that scale other systems' jobs: et-operator's ScaleIn and ScaleOut.

It keeps nothing: each call takes the next step that follows from what is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from msgspec import structs

from lockstep.api.core import CRDS, AnyObject
from lockstep.api.meta import controller_of
from lockstep.api.training import TRAINING_JOBS, TrainingJob
from lockstep.compat.etoperator import scaling
from lockstep.compat.etoperator.kinds import JOB, SCALE_IN, SCALE_OUT
from lockstep.compat.foreign_kinds import DIALECT_LABEL, ForeignKind
from lockstep.compat.translation import MANAGED_ANNOTATION
from lockstep.kube.client import Client
from lockstep.kube.errors import Forbidden, NotFound
from lockstep.kube.informer import Informer
from lockstep.runtime.controller import Controller, Key
from lockstep.runtime.manager import Manager
from lockstep.runtime.status import patch_status

_CATCH_UP: Final = 0.1
_LOOK_AGAIN: Final = 5.0
"""Seconds after which a scaler that waits looks again, should nothing have told it."""


@dataclass(frozen=True)
class ScalingController:
    """Serves the scalers of one kind."""

    client: Client
    kind: ForeignKind
    scalers: dict[str, Informer[AnyObject]]
    jobs: Informer[AnyObject]
    natives: Informer[TrainingJob]

    async def reconcile(self, key: Key) -> float | None:
        """Take the next step for the scaler at *key*; return when to look again.

        Raises:
            ApiError: when the server cannot be used now; the caller tries again later.
        """
        found = self.scalers[self.kind.kind].get(*key)
        if found is None or found.metadata.deletion_timestamp is not None:
            return None
        if not await self._ours(found):
            return None
        scaler = structs.replace(found, kind=self.kind.kind)
        name = (scaler.spec.get("selector") or {}).get("name", "")
        job = self.jobs.get(key[0], name) if isinstance(name, str) else None
        native = self.natives.get(key[0], name) if job is not None else None
        if native is not None and job is not None:
            owner = controller_of(native.metadata)
            native = native if owner and owner.uid == job.metadata.uid else None
        todo = scaling.step(scaler, job, native, self._all())
        if job is not None and todo.of_job is not None:
            kind, meta = JOB.resource, job.metadata
            await patch_status(self.client, kind, meta, todo.of_job, seen=True)
            return _CATCH_UP
        if todo.own is not None:
            kind, meta = self.kind.resource, scaler.metadata
            await patch_status(self.client, kind, meta, todo.own, seen=True)
            return _CATCH_UP
        return None if scaler.status.get("phase") in scaling.OVER else _LOOK_AGAIN

    def _all(self) -> frozenset[str]:
        """Return the keys of all scalers that are there."""
        return frozenset(
            scaling.key(structs.replace(one, kind=kind))
            for kind, cache in self.scalers.items()
            for one in cache
        )

    async def _ours(self, scaler: AnyObject) -> bool:
        said = scaler.metadata.annotations.get(MANAGED_ANNOTATION)
        if said is not None:
            return said == "true"
        try:
            crd = await self.client.get(CRDS, f"{self.kind.plural}.{self.kind.group}")
        except (NotFound, Forbidden):
            return False
        return DIALECT_LABEL in crd.metadata.labels


def add_scaling(manager: Manager) -> None:
    """Serve ScaleIns and ScaleOuts while *manager* leads."""
    jobs = manager.informer(JOB.resource)
    natives = manager.informer(TRAINING_JOBS)
    scalers = {kind.kind: manager.informer(kind.resource) for kind in (SCALE_IN, SCALE_OUT)}
    for cache in (jobs, *scalers.values()):
        cache.optional = True
    for kind in (SCALE_IN, SCALE_OUT):
        shell = ScalingController(manager.client, kind, scalers, jobs, natives)
        controller = Controller(kind.kind.lower(), shell.reconcile, workers=1)
        controller.follow(scalers[kind.kind])
        controller.follow(jobs, _scalers_of(scalers[kind.kind]))
        controller.follow(natives, _scalers_of(scalers[kind.kind]))
        manager.add(controller)


def _scalers_of(scalers: Informer[AnyObject]) -> Callable[[AnyObject | TrainingJob], Iterable[Key]]:
    """Return a function that tells which scalers may go on when a job has changed."""

    def keys(job: AnyObject | TrainingJob) -> Iterable[Key]:
        for one in scalers:
            meta = one.metadata
            name = (one.spec.get("selector") or {}).get("name")
            over = one.status.get("phase") in scaling.OVER
            if not over and (meta.namespace, name) == (job.metadata.namespace, job.metadata.name):
                yield meta.namespace, meta.name

    return keys
