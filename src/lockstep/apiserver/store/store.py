"""The store: optimistic decisions on the event loop, durable before they are acknowledged."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from lockstep.api.wire import encode
from lockstep.apiserver.store.commits import Committer
from lockstep.apiserver.store.history import Compacted, History
from lockstep.apiserver.store.log import Log
from lockstep.apiserver.store.record import Event, Key, Record, meta_of

MAX_OBJECT = 3 << 20
"""Bytes of JSON that one object may have."""
MAX_VALUES = 50_000
"""How many lists, maps, texts, numbers and the like may be in one object.

Every one of them is looked at several times on the way into the store, on the only thread there is.
"""
MAX_DEPTH = 200
"""How deep the lists and maps of one object may be nested."""

Listener = Callable[[Sequence[Event]], None]


class Unstorable(Exception):
    """An object that is too large, or nested too deeply; the text says which."""


class Store:
    """All objects, in memory and on disk, under one strictly increasing revision.

    Decisions are made on the event loop's one thread: between :meth:`newest` and :meth:`put` or
    :meth:`remove` without an ``await`` nothing can change, so a write is never half-checked.
    Readers see a change only once it is durable.
    """

    def __init__(
        self,
        path: Path,
        *,
        synchronous: str = "FULL",
        max_events: int = 50_000,
        max_bytes: int = 256 << 20,
    ) -> None:
        self._log = Log(path, synchronous=synchronous)
        self._objects: dict[str, dict[str, dict[str, Record]]] = {}
        self._ahead: dict[Key, Event] = {}
        self._listeners: list[Listener] = []
        self._history = History(self._log.compacted, max_events=max_events, max_bytes=max_bytes)
        left_over = self._load()
        self._decided = self.revision
        self._commits = Committer(self._log, self._apply, self._ahead.clear)
        self._commits.compact(self._history.compacted, left_over)

    def _load(self) -> list[int]:
        """Read the log; return the rows that a compaction had no time to delete."""
        left_over: list[int] = []
        self.revision = self._history.compacted
        for row in self._log.rows():
            key = Key(row.resource, row.namespace, row.name)
            event = Event(
                Record(key, row.revision, row.data), self.get(key), deleted=bool(row.deleted)
            )
            self._place(event)
            if row.revision > self._history.compacted:
                self._history.add(event)
                self.revision = row.revision
            else:
                left_over.extend(event.superseded)
        return left_over

    @property
    def compacted(self) -> int:
        """Return the oldest revision from which a watch may resume."""
        return self._history.compacted

    def get(self, key: Key) -> Record | None:
        """Return the durable state of an object."""
        namespaces = self._objects.get(key.resource)
        names = namespaces.get(key.namespace) if namespaces else None
        return names.get(key.name) if names else None

    def newest(self, key: Key) -> Record | None:
        """Return the newest decided state of an object, durable or about to be."""
        ahead = self._ahead.get(key)
        if ahead is None:
            return self.get(key)
        return None if ahead.deleted else ahead.record

    def decided(self, resource: str) -> list[Record]:
        """Return the newest decided state of all objects of *resource*, as `newest` of each."""
        ahead = {key: event for key, event in self._ahead.items() if key.resource == resource}
        durable = [record for record in self.objects(resource) if record.key not in ahead]
        return durable + [event.record for event in ahead.values() if not event.deleted]

    def ahead(self, namespace: str) -> list[Event]:
        """Return the newest changes in a namespace that are decided, but not yet durable."""
        return [event for key, event in self._ahead.items() if key.namespace == namespace]

    def put(self, key: Key, obj: dict[str, Any]) -> asyncio.Future[Record]:
        """Write *obj*, giving it its resource version; the future is done once it is durable.

        Raises:
            Unstorable: at once, when it is larger than objects may be.
        """
        return self._decide(key, obj, deleted=False)

    def remove(self, key: Key, obj: dict[str, Any]) -> asyncio.Future[Record]:
        """Delete an object whose last state is *obj*; the future is done once that is durable."""
        return self._decide(key, obj, deleted=True)

    def _decide(self, key: Key, obj: dict[str, Any], *, deleted: bool) -> asyncio.Future[Record]:
        previous = self.newest(key)
        meta = meta_of(obj)
        revision = self._decided + 1
        obj["metadata"]["resourceVersion"] = str(revision)
        data = encode(obj)
        if not deleted and (previous is None or len(data) > len(previous.data)):
            _require_storable(obj, data)
        self._decided = revision
        record = Record(key, revision, data, meta)
        event = Event(record, previous, deleted=deleted)
        self._ahead[key] = event
        return self._commits.submit(event)

    def _apply(self, events: Sequence[Event]) -> None:
        for event in events:
            self._place(event)
            self._history.add(event)
            if self._ahead.get(event.record.key) is event:
                del self._ahead[event.record.key]
        self.revision = events[-1].revision
        for listener in self._listeners:
            listener(events)
        if self._history.overfull():
            self.compact()

    def _place(self, event: Event) -> None:
        resource, namespace, name = event.record.key
        namespaces = self._objects.setdefault(resource, {})
        names = namespaces.setdefault(namespace, {})
        if not event.deleted:
            names[name] = event.record
            return
        names.pop(name, None)
        if not names:
            del namespaces[namespace]

    def subscribe(self, listener: Listener) -> None:
        """Call *listener* with each durable batch of events, in order."""
        self._listeners.append(listener)

    def compact(self, upto: int | None = None) -> None:
        """Give up the oldest tenth of the history, or all of it up to *upto*."""
        freed = self._history.trim(upto)
        self._commits.compact(self._history.compacted, freed)

    def objects(self, resource: str, namespace: str = "") -> list[Record]:
        """Return the durable objects of *resource*, of one namespace or of all."""
        namespaces = self._objects.get(resource, {})
        if namespace:
            return list(namespaces.get(namespace, {}).values())
        return [record for names in namespaces.values() for record in names.values()]

    def counts(self) -> dict[str, int]:
        """Return how many objects there are of each resource."""
        return {
            resource: sum(map(len, namespaces.values()))
            for resource, namespaces in self._objects.items()
        }

    def has(self, resource: str, namespace: str) -> bool:
        """Return whether there is any durable object of *resource* in a namespace."""
        return namespace in self._objects.get(resource, {})

    def everything(self) -> Iterator[Record]:
        """Yield every durable object."""
        for resource in list(self._objects):
            yield from self.objects(resource)

    def in_namespace(self, namespace: str) -> Iterator[Record]:
        """Yield every durable object in a namespace."""
        for resource in list(self._objects):
            yield from self.objects(resource, namespace)

    def objects_at(self, resource: str, namespace: str, revision: int) -> list[Record]:
        """Return the objects of *resource* as they were at *revision*.

        Raises:
            Compacted: when that can no longer be told.
        """
        then = self._history.undo(resource, revision)
        now = self.objects(resource, namespace)
        kept = [r for r in now if (r.key.namespace, r.key.name) not in then]
        undone = [r for r in then.values() if r and namespace in ("", r.key.namespace)]
        return kept + undone

    def since(self, resource: str, revision: int) -> list[Event]:
        """Return the events of *resource* after *revision*.

        Raises:
            Compacted: when some of them are gone.
        """
        if revision > self.revision:
            # No client can have seen a revision that was never acknowledged: it is from a store
            # that is gone, and to wait for it would be to skip everything until then.
            raise Compacted(revision, self.compacted)
        return self._history.since(resource, revision)

    async def close(self) -> None:
        """Finish what is under way and close the file."""
        await self._commits.close()


def require_few_values(value: Any, data: bytes) -> None:
    """Require that *value*, of which *data* is one form, has not too many parts.

    Raises:
        Unstorable: when it has.
    """
    if len(data) <= MAX_VALUES:
        return
    count, left = 0, [value]
    while left and count <= MAX_VALUES:
        parts = list(_parts(left.pop()))
        count += len(parts)
        left.extend(part for part in parts if type(part) in _NESTS)
    if count > MAX_VALUES:
        raise Unstorable(f"an object may have {MAX_VALUES} values; this one has more")


def _require_storable(obj: dict[str, Any], data: bytes) -> None:
    if len(data) > MAX_OBJECT:
        raise Unstorable(f"the object would have {len(data)} bytes; {MAX_OBJECT} are allowed")
    require_few_values(obj, data)
    if data.count(b"{") + data.count(b"[") <= MAX_DEPTH:
        return
    level: list[Any] = [obj]
    for _ in range(MAX_DEPTH + 1):
        level = [part for whole in level for part in _parts(whole) if part and type(part) in _NESTS]
        if not level:
            return
    raise Unstorable(f"the object is nested deeper than {MAX_DEPTH} levels")


_NESTS = (dict, list)


def _parts(whole: Any) -> Any:
    return whole.values() if type(whole) is dict else whole
