"""The controller of other systems' jobs and queues: ours are made of them, theirs say how it goes.

It keeps nothing between two calls but whose each kind is; everything else is read from the caches.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
from msgspec import structs

from lockstep.api import timestamp
from lockstep.api.core import CLAIMS, CONFIG_MAPS, CRDS, AnyObject
from lockstep.api.gang import GANGS, Gang
from lockstep.api.meta import ObjectMeta, controller_of, owner_reference
from lockstep.api.names import JOB_LABEL
from lockstep.api.queue import QUEUES
from lockstep.api.training import TRAINING_JOBS, TrainingJob
from lockstep.api.validation import Problem
from lockstep.api.wire import Json
from lockstep.compat.foreign_kinds import DIALECT_LABEL, ForeignKind
from lockstep.compat.kai import placement
from lockstep.compat.kubeflow.notebook import NOTEBOOKS
from lockstep.compat.kueue import contract
from lockstep.compat.kueue.contract import Terms
from lockstep.compat.kueue.kinds import WORKLOAD
from lockstep.compat.kueue.workload import status as workload_status
from lockstep.compat.kueue.workload import workload, workload_name
from lockstep.compat.native import job_of
from lockstep.compat.pods import LOCAL_QUEUE_LABEL
from lockstep.compat.queues import IMPLIED, MADE_OF, origin
from lockstep.compat.registry import sources
from lockstep.compat.translation import (
    MANAGED_ANNOTATION,
    MANAGER,
    Native,
    Refused,
    Source,
    Translation,
)
from lockstep.dialects.implied_gangs import add_implied_gangs
from lockstep.dialects.made import MADE, change, present, refused
from lockstep.kube.client import Client
from lockstep.kube.errors import AlreadyExists, ApiError, Conflict, Forbidden, NotFound
from lockstep.kube.events import Recorder, reference
from lockstep.kube.informer import Informer
from lockstep.runtime.actions import Change
from lockstep.runtime.controller import Controller, Key
from lockstep.runtime.execution import execute
from lockstep.runtime.manager import Manager
from lockstep.runtime.refusals import refuses
from lockstep.runtime.status import write_status

_EMBEDDED: Final = "+lockstep-"
"""In the version of the embedded API server, beside which no one serves built-in kinds."""
_CATCH_UP: Final = 0.1
_QUEUE_COMES: Final = 1.0
"""Seconds after which a queue that was missing, or a gang's place, is looked for again."""
_ASK_AGAIN: Final = 30.0
"""Seconds for which it is believed whose a kind is."""


@dataclass
class DialectController:
    """Serves the objects of one kind."""

    client: Client
    source: Source
    objects: Informer[AnyObject]
    natives: Mapping[str, Informer[Any]]
    recorder: Recorder
    read: Mapping[ForeignKind, Informer[AnyObject]] = field(default_factory=dict)
    """Objects that those of the kind name."""
    clock: Callable[[], float] = time.time
    _installed: tuple[float, bool] = (0.0, False)
    """Until when it holds whether Lockstep installed the kind."""

    async def reconcile(self, key: Key) -> float | None:
        """Take the next step for the object at *key*; return when to look again.

        Raises:
            ApiError: when the server cannot be used now; the caller tries again later.
        """
        found = self.objects.get(*key)
        if found is None:
            return await self._orphaned(key)
        if found.metadata.deletion_timestamp is not None or not await self._ours(found):
            return None
        kind = self.source.kind
        obj = structs.replace(found, kind=kind.kind, api_version=f"{kind.group}/{kind.version}")
        return await self._serve(obj)

    async def _serve(self, obj: AnyObject) -> float | None:
        translation, terms = self._translated(obj)
        wrong = list(translation.refusals)
        over = self.source.ended(obj)
        if not wrong and not over:
            for body in translation.objects:
                if problem := await self._ensure(obj, body):
                    wrong.append(problem)
        there = self._made(obj)
        # Once it is over its status stays, though what was made of it may be deleted.
        if there or not over:
            await self._tell(obj, self.source.status_of(obj, there, wrong), wrong)
        if self.source.drops(obj):
            await self._drop(there)
        if terms is not None and (again := await self._admit(obj, there, terms)):
            return again
        if self._waits_for_queue(wrong):
            return _QUEUE_COMES
        return await self._expire(obj, there, translation.expires_after)

    def _translated(self, obj: AnyObject) -> tuple[Translation, Terms | None]:
        """Return *obj* as ours, under Kueue's contract where it names a queue."""
        made = self.source.to_native(obj, self._look)
        queues = self.natives[QUEUES.kind]
        try:
            return contract.under(
                obj,
                placement.near(obj, made, self._look),
                self._look,
                lambda name: queues.get("", name) is not None,
                placed=contract.placed(self._gang_of(obj, self._made(obj))),
            )
        except Refused as wrong:
            return Translation(refusals=(wrong.problem,)), None

    def _waits_for_queue(self, wrong: Sequence[Problem]) -> bool:
        """Say whether a queue or a flavor that the object names may still come."""
        return any(LOCAL_QUEUE_LABEL in problem.field for problem in wrong)

    async def _admit(self, obj: AnyObject, there: Sequence[Native], terms: Terms) -> float | None:
        """Keep the Workload of *obj*, and its suspension; return when to look again."""
        job = job_of(there)
        if job is None:
            return _CATCH_UP
        space = obj.metadata.namespace
        gang = self._gang_of(obj, there)
        known = self.read[WORKLOAD].get(space, workload_name(obj))
        res = WORKLOAD.resource
        try:
            if known is None:
                known = await self.client.create(res, workload(obj, job, terms), space)
        except AlreadyExists:
            return _CATCH_UP
        except NotFound:
            return None  # Kueue's kinds are there in part.
        told = workload_status(known, job, gang, terms, timestamp.show(self.clock()))
        await write_status(self.client, res, known, told)
        if patch := contract.suspension(obj, job, gang):
            change = Change(self.source.resource, obj.metadata.name, patch, space)
            await execute(self.client, change)
        return _QUEUE_COMES if terms.held else None

    def _gang_of(self, obj: AnyObject, there: Sequence[Native]) -> Gang | None:
        job = job_of(there)
        gangs = self.natives[GANGS.kind]
        return gangs.get(obj.metadata.namespace, job.metadata.name) if job is not None else None

    async def _drop(self, there: Sequence[Native]) -> None:
        """Delete the jobs that were made of an object that stays."""
        for meta in (one.metadata for one in there if isinstance(one, TrainingJob)):
            with contextlib.suppress(NotFound):
                await self.client.delete(
                    TRAINING_JOBS, meta.name, meta.namespace, uid=meta.uid, propagation="Background"
                )

    def _look(self, kind: ForeignKind, namespace: str, name: str) -> AnyObject | None:
        known = self.read[kind]
        if name:
            return known.get(namespace, name)
        here = [one for one in known if one.metadata.namespace == namespace]
        return min(here, key=lambda one: one.metadata.name, default=None)

    async def _orphaned(self, key: Key) -> float | None:
        """Delete what was made of an object that is gone, where it has no owner to end with."""
        name = self.source.native_name(*key)
        for kind, cache in self.natives.items():
            res = MADE[kind]
            there = None if res.namespaced else cache.get("", name)
            if there is None or there.metadata.annotations.get(MADE_OF) != self._origin(*key):
                continue
            try:
                # The caches are not in step: an object that has come meanwhile keeps it.
                with contextlib.suppress(NotFound):
                    await self.client.get(self.source.resource, key[1], key[0])
                    return _CATCH_UP
                await self.client.delete(res, name, uid=there.metadata.uid)
            except NotFound:
                continue
            except Conflict:
                # No event need come of it: what is there then is looked at again.
                return _CATCH_UP
        return None

    async def _ours(self, obj: AnyObject) -> bool:
        """Say whether *obj* is Lockstep's to serve."""
        said = obj.metadata.annotations.get(MANAGED_ANNOTATION)
        if said is not None:
            return said == "true"
        if manager := self.source.manager(obj):
            return manager == MANAGER
        until, known = self._installed
        if self.clock() < until:
            return known
        known = await self._installed_here()
        self._installed = (self.clock() + _ASK_AGAIN, known)
        return known

    async def _installed_here(self) -> bool:
        """Say whether Lockstep installed the kind; a built-in one, whether it is alone here."""
        kind = self.source.kind
        try:
            if self.source.built_in:
                version = msgspec.json.decode(await self.client.get_raw("/version"))
                return _EMBEDDED in version.get("gitVersion", "")
            crd = await self.client.get(CRDS, f"{kind.plural}.{kind.group}")
        except (NotFound, Forbidden):
            return False
        return DIALECT_LABEL in crd.metadata.labels

    def _made(self, obj: AnyObject) -> list[Native]:
        """Return what was made of *obj*, as far as the caches show it."""
        meta = obj.metadata
        several = self.source.names
        own = self.source.native_name(meta.namespace, meta.name)
        found = (
            cache.get(meta.namespace if MADE[kind].namespaced else "", name)
            for kind, cache in self.natives.items()
            for name in (several(obj) if several is not None else (own,))
        )
        return [one for one in found if one is not None and self._owns(obj, one.metadata)]

    def _origin(self, namespace: str, name: str) -> str:
        return origin(self.source.kind.kind, self.source.kind.group, namespace, name)

    def _owns(self, obj: AnyObject, meta: ObjectMeta) -> bool:
        if made_of := meta.annotations.get(MADE_OF):
            return made_of == self._origin(obj.metadata.namespace, obj.metadata.name)
        owner = controller_of(meta)
        return owner is not None and owner.uid == obj.metadata.uid

    async def _ensure(self, obj: AnyObject, body: Json) -> Problem | None:
        """Create or change the object *body*; return what keeps it from being as it says."""
        try:
            return await self._put(obj, body)
        except msgspec.ValidationError as error:
            return Problem("spec", None, str(error))

    async def _put(self, obj: AnyObject, body: Json) -> Problem | None:
        kind, name = body["kind"], body["metadata"]["name"]
        res = MADE[kind]
        space = obj.metadata.namespace if res.namespaced else ""
        made_of = body["metadata"].get("annotations", {}).get(MADE_OF)
        there = self.natives[kind].get(space, name)
        if there is None:
            owned = {"ownerReferences": [owner_reference(obj)]} if res.namespaced else {}
            about = {**owned, **body["metadata"], "annotations": present(body)}
            try:
                await self.client.create(res, {**body, "metadata": about}, space or None)
                return None
            except AlreadyExists:
                there = await self.client.get(res, name, space or None)
            except ApiError as error:
                if not refuses(error):
                    raise
                return refused(kind, error)
        if made_of == IMPLIED or res is CLAIMS:
            return None
        patch = change(there, body)
        if there.metadata.annotations.get(MADE_OF) == IMPLIED:
            patch["metadata"] = {"annotations": {MADE_OF: made_of}}
        elif not self._owns(obj, there.metadata):
            allowed = f"a {kind} of that name is there already; take another"
            return Problem("metadata.name", name, allowed)
        refusal = await execute(self.client, Change(res, name, patch, space)) if patch else None
        return refused(kind, refusal.error) if refusal else None

    async def _tell(self, obj: AnyObject, status: Json, wrong: Sequence[Problem]) -> None:
        if await write_status(self.client, self.source.resource, obj, status) is None:
            return
        subject = reference(self.source.resource, obj.metadata)
        for problem in wrong:
            self.recorder.event(subject, "Warning", "Refused", str(problem))

    async def _expire(
        self, obj: AnyObject, there: Sequence[Native], after: float | None
    ) -> float | None:
        """Delete *obj* when its time after its end is over; return when that is."""
        ends = (one.status.completion_time for one in there if isinstance(one, TrainingJob))
        end = next((time for time in ends if time is not None), None)
        if after is None or end is None:
            return None
        left = timestamp.parse(end) + after - self.clock()
        if left > 0:
            return left
        meta = obj.metadata
        await self.client.delete(
            self.source.resource, meta.name, meta.namespace, uid=meta.uid, propagation="Background"
        )
        return None


def add_dialects(manager: Manager) -> None:
    """Serve every kind of the registry that the server has, while *manager* leads."""
    natives = {
        kind: manager.informer(
            res, label_selector=JOB_LABEL if res in (CONFIG_MAPS, CLAIMS) else ""
        )
        for kind, res in MADE.items()
    }
    # Kubeflow's own kind, which a cluster need not have.
    natives[NOTEBOOKS.kind].optional = True
    for source in sources():
        objects = manager.informer(source.resource, optional=True)
        looked = (*source.reads, *contract.READS, WORKLOAD)
        read = {kind: manager.informer(kind.resource, optional=True) for kind in looked}
        shell = DialectController(
            manager.client, source, objects, natives, manager.recorder(), read
        )
        controller = Controller(source.kind.kind.lower(), shell.reconcile, workers=2)
        controller.follow(objects)
        for kind, named in read.items():
            if kind in source.reads:
                controller.follow(named, objects.all_keys)
        for informer in natives.values():
            controller.follow(informer, _made_of(source))
        manager.add(controller)
    add_implied_gangs(manager)


def _made_of(source: Source) -> Callable[[Native], Iterable[Key]]:
    """Return a function that tells of which object of *source*'s kind one of ours was made."""
    kind = source.kind

    def keys(native: Native) -> Iterable[Key]:
        if made_of := native.metadata.annotations.get(MADE_OF):
            whole, *place = made_of.split("/")
            if whole != f"{kind.kind}.{kind.group}" or not place:
                return ()
            return ((place[0] if kind.namespaced else "", place[-1]),)
        owner = controller_of(native.metadata)
        if owner is None or owner.kind != kind.kind:
            return ()
        if owner.api_version.partition("/")[0] != kind.group:
            return ()
        return ((native.metadata.namespace, owner.name),)

    return keys
