"""Removing what has to go: dependents of what is gone, contents, stranded pods, old events."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final

from lockstep.api.wire import Json
from lockstep.apiserver import status
from lockstep.apiserver.auth.rbac import Rbac
from lockstep.apiserver.catalog import Served
from lockstep.apiserver.clock import seconds
from lockstep.apiserver.controllers.graph import StoreGraph, item_of, node_of
from lockstep.apiserver.controllers.rbac import CLUSTER_ROLES
from lockstep.apiserver.deletion import Deletion
from lockstep.apiserver.gc.contents import NAMESPACES, ContainerGraph
from lockstep.apiserver.gc.expiry import Expiry
from lockstep.apiserver.gc.model import Action, Delete, DropOwners, Finish, Place, Unblock
from lockstep.apiserver.gc.owners import OwnerGraph
from lockstep.apiserver.gc.pods import StrandedPods
from lockstep.apiserver.objects import Objects, WriteOptions
from lockstep.apiserver.store import Event, Record, StoreUnavailable

logger = logging.getLogger(__name__)


_CONCURRENT: Final = 200
_RETRY_SECONDS: Final = 1.0
_IDLE_SECONDS: Final = 60.0
_OPTIONS: Final = WriteOptions(manager="garbage-collector", validation="Ignore")
_AGGREGATION: Final = WriteOptions(manager="clusterrole-aggregation-controller")
_PODS, _NODES, _EVENTS = "pods", "nodes", "events"


class Housekeeper:
    """Feeds the collectors with the store's changes and does what they decide."""

    def __init__(self, objects: Objects, rbac: Rbac) -> None:
        self._objects = objects
        self._rbac = rbac
        self._store = objects.store
        self._catalog = objects.catalog
        self._clock = objects.clock
        graph = StoreGraph(objects.store, objects.catalog)
        self._owners = OwnerGraph(graph.lookup, graph.resource_of)
        self._containers = ContainerGraph(graph.lookup, graph.contents)
        self._pods = StrandedPods()
        self._expiry = Expiry()
        self._wake = asyncio.Event()
        self._slots = asyncio.Semaphore(_CONCURRENT)
        self._kinds = self._catalog.changes
        self._roles_changed = True

    def start(self) -> None:
        """Look at everything once, and follow every change from now on."""
        now = self._clock()
        for record in self._store.objects(_NODES):
            self._pods.node_seen(record.key.name)
        for record in self._store.everything():
            self._owners.observe(None, item_of(record))
            self._containers.observe(None, item_of(record))
            if record.key.resource == _PODS and (node := node_of(record)):
                self._pods.pod_seen(Place(*record.key), record.meta.uid, node, now)
        for written, record in sorted(
            ((_written_at(r, now), r) for r in self._store.objects(_EVENTS)), key=lambda e: e[0]
        ):
            self._expiry.seen(Place(*record.key), record.meta.uid, written)
        self._store.subscribe(self._follow)
        self._wake.set()

    async def run(self) -> None:
        """Do what is decided, as it falls due, until cancelled."""
        while True:
            await self._wait()
            self._wake.clear()
            await self.tidy()

    def _follow(self, events: Sequence[Event]) -> None:
        now = self._clock()
        for event in events:
            record = event.record
            old = item_of(event.previous) if event.previous else None
            new = None if event.deleted else item_of(record)
            self._owners.observe(old, new)
            self._containers.observe(old, new)
            match record.key.resource:
                case "pods":
                    self._follow_pod(event, now)
                case "nodes" if event.deleted:
                    self._pods.node_gone(record.key.name, now)
                case "nodes":
                    self._pods.node_seen(record.key.name)
                case "events" if event.deleted:
                    self._expiry.gone(Place(*record.key))
                case "events":
                    self._expiry.seen(Place(*record.key), record.meta.uid, now)
                case resource if resource == CLUSTER_ROLES:
                    self._roles_changed = True
        self._wake.set()

    def _follow_pod(self, event: Event, now: float) -> None:
        record = event.record
        node = node_of(record)
        if not node:
            return
        if event.deleted:
            self._pods.pod_gone(Place(*record.key), node)
        else:
            self._pods.pod_seen(Place(*record.key), record.meta.uid, node, now)

    async def _wait(self) -> None:
        due = [d for d in (self._pods.next_due(), self._expiry.next_due()) if d is not None]
        delay = min([d - self._clock() for d in due] + [_IDLE_SECONDS])
        try:
            async with asyncio.timeout(max(delay, 0.0)):
                await self._wake.wait()
        except TimeoutError:
            pass

    async def tidy(self) -> None:
        """Decide and do everything that is due now."""
        if self._kinds != self._catalog.changes:
            self._kinds = self._catalog.changes
            self._owners.recheck()
        await self._decide(self._owners.take(), self._owners.decide, self._owners.mark)
        await self._decide(self._containers.take(), self._containers.decide, self._containers.mark)
        now = self._clock()
        await self._do_all([*self._pods.due(now), *self._expiry.due(now)])
        if self._roles_changed:
            self._roles_changed = False
            await self._aggregate()

    async def _decide(
        self,
        places: Iterable[Place],
        decide: Callable[[Place], list[Action]],
        mark: Callable[[Place], None],
    ) -> None:
        """Decide about marked objects; what cannot be done is decided anew a little later."""
        # Most changes call for nothing, and that should not cost a task each.
        decided = [(place, actions) for place in places if (actions := decide(place))]
        done = await asyncio.gather(*(self._do_all(actions) for _, actions in decided))
        failed = [place for (place, _), is_done in zip(decided, done, strict=True) if not is_done]
        if failed:
            asyncio.get_running_loop().call_later(_RETRY_SECONDS, self._retry, failed, mark)

    def _retry(self, places: list[Place], mark: Callable[[Place], None]) -> None:
        for place in places:
            mark(place)
        self._wake.set()

    async def _do_all(self, actions: Sequence[Action]) -> bool:
        """Do what was decided about one object, the removal of its finalizer last of all."""
        first = [action for action in actions if not isinstance(action, Finish)]
        last = [action for action in actions if isinstance(action, Finish)]
        done = await asyncio.gather(*map(self._do, first))
        return all(done) and all([await self._do(action) for action in last])

    async def _do(self, action: Action) -> bool:
        served = self._catalog.stored_as(action.place.resource)
        if served is None:
            return True
        try:
            async with self._slots:
                if isinstance(action, Delete):
                    deletion = Deletion(action.grace, action.propagation, action.uid)
                    await self._objects.delete(served, *action.place[1:], deletion)
                else:
                    await self._change(served, action)
        except status.StatusError as error:
            if error.code in (404, 409):
                # It is gone, or another object has its name by now.
                return True
            logger.warning("cannot tidy up %s: %s", action, error)
            return False
        except StoreUnavailable as error:
            logger.warning("cannot tidy up %s: %s", action, error)
            return False
        return True

    async def _change(self, served: Served, action: DropOwners | Unblock | Finish) -> None:
        is_namespace = isinstance(action, Finish) and action.place.resource == NAMESPACES

        def mutate(obj: Json) -> Json:
            if obj["metadata"]["uid"] != action.uid:
                raise status.not_found(served.kind.group, served.kind.plural, action.place.name)
            return _mutated(obj, action)

        await self._objects.change(
            served,
            *action.place[1:],
            mutate,
            _OPTIONS,
            subresource="finalize" if is_namespace else "",
        )

    async def _aggregate(self) -> None:
        served = self._catalog.stored_as(CLUSTER_ROLES)
        if served is None:
            return
        for name, rules in list(self._rbac.aggregated()):
            mutate = partial(_with_rules, rules=[rule.to_object() for rule in rules])
            try:
                await self._objects.change(served, "", name, mutate, _AGGREGATION)
            except status.StatusError as error:
                logger.warning("cannot aggregate the cluster role %s: %s", name, error)


def _with_rules(role: Json, *, rules: list[Json]) -> Json:
    return {**role, "rules": rules}


def _mutated(obj: Json, action: DropOwners | Unblock | Finish) -> Json:
    meta = obj["metadata"]
    match action:
        case DropOwners():
            kept = [o for o in meta.get("ownerReferences", ()) if o["uid"] not in action.owners]
            _set_or_drop(meta, "ownerReferences", kept)
        case Unblock():
            for owner in meta.get("ownerReferences", ()):
                owner["blockOwnerDeletion"] = False
        case Finish(place=place):
            holder = obj.get("spec") or {} if place.resource == NAMESPACES else meta
            kept = [f for f in holder.get("finalizers", ()) if f != action.finalizer]
            _set_or_drop(holder, "finalizers", kept)
    return obj


def _set_or_drop(holder: Json, key: str, values: list[Any]) -> None:
    if values:
        holder[key] = values
    else:
        holder.pop(key, None)


def _written_at(event: Record, now: float) -> float:
    obj = event.object()
    last = obj.get("lastTimestamp") or obj["metadata"].get("creationTimestamp")
    try:
        return min(seconds(last), now) if last else now
    except ValueError:
        return now
