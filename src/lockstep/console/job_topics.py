"""Topics of one object: a job with what belongs to it, its ranks, and any other object."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

import msgspec
from msgspec import structs

from lockstep.api import timestamp
from lockstep.api.core import EVENTS, LEASES, PODS
from lockstep.api.device_usage import DEVICE_USAGES
from lockstep.api.gang import GANGS
from lockstep.api.job_record import JobRecord, closed
from lockstep.api.resource import Resource
from lockstep.api.training import TRAINING_JOBS
from lockstep.console.cluster_cache import ClusterCache
from lockstep.console.sessions import Session
from lockstep.console.topics import Topic, forbidden, unread
from lockstep.console.views import job, ranks
from lockstep.console.views.kinds import KINDS, OBJECTS
from lockstep.console.views.picture import Picture
from lockstep.console.views.query import BadQuery, require_names
from lockstep.kube.errors import ApiError, Forbidden, NotFound
from lockstep.kube.usage import recorded_jobs


class JobPage(Topic):
    """``job/NAMESPACE/NAME``: a job with its gang, pods and events."""

    kinds = frozenset({"TrainingJob", "Gang", "Pod", "Event"})

    def __init__(self, world: ClusterCache, session: Session, namespace: str, name: str) -> None:
        super().__init__(world, session)
        self._namespace, self._name = namespace, name
        self._records: list[JobRecord] | None = None

    def concerns(self, kind: str, namespace: str, name: str) -> bool:
        """Tell whether a change belongs to the job; events of its pods are named as they are."""
        ours = name == self._name or (kind == "Event" and name.startswith(f"{self._name}-"))
        return namespace == self._namespace and kind in self.kinds and ours

    async def picture(self) -> Picture:
        """Return the page; what the user may not list is left out and named in ``hidden``."""
        world, space, name = self.world, self._namespace, self._name
        rights = self.session.rights
        kinds = (TRAINING_JOBS, GANGS, PODS, EVENTS)
        may = {res.kind: await rights.lists(res, space) for res in kinds}
        if not may["TrainingJob"]:
            return forbidden(TRAINING_JOBS, space)
        pods = world.pods_of(space, name) if may["Pod"] else []
        about = [name, *(pod.metadata.name for pod in pods)]
        usage = await self._usage(pods)
        present = world.jobs.get(space, name)
        if present is not None:
            self._records = None
        record = await self._deleted() if present is None else None
        found = job.page(
            present if record is None else closed(record),
            world.gangs.get(space, name) if may["Gang"] else None,
            pods,
            world.events_about(space, about) if may["Event"] else [],
            usage,
        )
        hidden = sorted(kind for kind, allowed in may.items() if not allowed)
        deleted = {} if record is None else {"deleted": record.deleted}
        return Picture({**found.facts, **deleted, "hidden": hidden}, found.order, found.rows)

    async def _deleted(self) -> JobRecord | None:
        """Return the record of a job that is gone, which is asked for once."""
        if self._records is None:
            self._records = []
            with suppress(ApiError):
                client = self.session.client
                found = await recorded_jobs(client, self._namespace, self._name)
                # It may have gone a moment ago, and the recorder not have seen it.
                at = timestamp.show(time.time())
                self._records = [structs.replace(o, deleted=o.deleted or at) for o in found[:1]]
        return next(iter(self._records), None)

    async def _usage(self, pods: list[Any]) -> dict[str, Any]:
        """Return what the devices of the pods' nodes do, where the user may see that."""
        if not await self.session.rights.may_list(DEVICE_USAGES, ""):
            return {}
        if not await self.world.cluster_ready():
            return {}
        nodes = {pod.spec.node_name for pod in pods if pod.spec.node_name}
        return {n: one for n in nodes if (one := self.world.usage.get("", n)) is not None}


class Ranks(Topic):
    """``ranks/NAMESPACE/JOB``: how far each pod's ranks are, as their launchers report."""

    kinds = frozenset({"Lease", "Pod"})

    def __init__(self, world: ClusterCache, session: Session, namespace: str, name: str) -> None:
        super().__init__(world, session)
        self._namespace, self._name = namespace, name

    def concerns(self, kind: str, namespace: str, name: str) -> bool:
        """Tell whether a change is of the job."""
        return kind in self.kinds and (namespace, name) == (self._namespace, self._name)

    async def picture(self) -> Picture:
        """Return a row for each pod that has reported."""
        rights = self.session.rights
        for res in (LEASES, PODS):
            if not await rights.lists(res, self._namespace):
                return forbidden(res, self._namespace)
        if not await self.world.reports():
            return unread(self.world)
        where = f"{self._namespace}/{self._name}"
        leases = self.world.leases.by_index("job", where)
        return ranks.page(leases, self.world.pods_of(self._namespace, self._name))


class ObjectPage(Topic):
    """``object/WORD/NAMESPACE/NAME``: any object as it is, and what was told of it.

    The object is read with the user's own credentials whenever the shared copy says that it has
    changed; the namespace of what has none is ``-``.
    """

    def __init__(
        self, world: ClusterCache, session: Session, word: str, namespace: str, name: str
    ) -> None:
        super().__init__(world, session)
        found = OBJECTS.get(word)
        if found is None or word not in KINDS:
            raise BadQuery(f"kind: {word[:40]!r} is none; use one of {', '.join(KINDS)}")
        if found.namespaced:
            require_names(namespace=namespace)
        self._word, self._resource = word, found
        self._namespace = namespace if found.namespaced else ""
        self._name = name
        self._read: tuple[str, Any] = ("", None)

    def concerns(self, kind: str, namespace: str, name: str) -> bool:
        """Tell whether a change is of the object, or tells of it."""
        same = (namespace, name) == (self._namespace, self._name)
        return kind in (self._resource.kind, "Event") and (
            same or (kind == "Event" and name == self._name)
        )

    async def picture(self) -> Picture:
        """Return the object, its summary in the columns of its list, and its events."""
        found = await self.world.collection(self._word)
        if found is None:
            return unread(self.world)
        known = found.informer.get(self._namespace, self._name)
        version = known.metadata.resource_version if known is not None else "gone"
        if version != self._read[0] or known is None:
            self._read = (version, await self._fetch(self._resource))
        obj = self._read[1]
        if obj is None:
            return Picture({"missing": True})
        if isinstance(obj, Picture):
            return obj
        row = found.rows.rows.get(f"{self._namespace}/{self._name}".lstrip("/"))
        facts = {
            "object": obj,
            "columns": [[column.name, column.shape] for column in found.kind.columns],
            "cells": list(row.cells) if row is not None else [],
        }
        events = await self._events()
        return Picture(facts, list(events), events)

    async def _fetch(self, res: Resource[Any]) -> Any:
        try:
            body = await self.session.client.get_raw(res.path(self._namespace or None, self._name))
        except NotFound:
            return None
        except Forbidden:
            group = f".{res.group}" if res.group else ""
            right = f"get {res.plural}{group}"
            return Picture({"forbidden": right, "namespace": self._namespace})
        found = msgspec.json.decode(body)
        found.get("metadata", {}).pop("managedFields", None)
        return found

    async def _events(self) -> dict[str, Any]:
        space = self._namespace or "default"
        if not await self.session.rights.lists(EVENTS, space):
            return {}
        about = self.world.events_about(space, [self._name])
        ours = [e for e in about if e.involved_object.kind == self._resource.kind]
        return {f"event/{e.metadata.name}": job.event_row(e) for e in job.latest(ours)}
