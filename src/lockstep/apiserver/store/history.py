"""The window of recent events that watches resume from and old lists are rebuilt from."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import takewhile

from lockstep.apiserver.store.record import Event, Record

Name = tuple[str, str]
"""Namespace and name of an object within its resource."""


class Compacted(Exception):
    """The revision asked for is older than the window."""

    def __init__(self, asked: int, oldest: int) -> None:
        super().__init__(f"too old resource version: {asked} ({oldest})")
        self.asked = asked
        self.oldest = oldest


class History:
    """Events by resource, oldest first; everything after ``compacted`` is there without a gap."""

    def __init__(self, compacted: int, *, max_events: int, max_bytes: int) -> None:
        self.compacted = compacted
        self._max_events = max_events
        self._max_bytes = max_bytes
        self._bytes = 0
        self._all: deque[Event] = deque()
        self._of: dict[str, deque[Event]] = {}

    def __len__(self) -> int:
        return len(self._all)

    def add(self, event: Event) -> None:
        """Add the newest event."""
        self._all.append(event)
        self._bytes += len(event.record.data)
        resource = event.record.key.resource
        events = self._of.get(resource)
        if events is None:
            events = self._of[resource] = deque()
        events.append(event)

    def since(self, resource: str, revision: int) -> list[Event]:
        """Return the events of *resource* after *revision*, oldest first.

        Raises:
            Compacted: when some of them are gone.
        """
        self._require(revision)
        newest_first = takewhile(
            lambda event: event.revision > revision, reversed(self._of.get(resource, ()))
        )
        return list(newest_first)[::-1]

    def undo(self, resource: str, revision: int) -> dict[Name, Record | None]:
        """Return the objects of *resource* that changed after *revision* as they were then.

        Raises:
            Compacted: when that can no longer be told.
        """
        self._require(revision)
        then: dict[Name, Record | None] = {}
        for event in reversed(self._of.get(resource, ())):
            if event.revision <= revision:
                break
            key = event.record.key
            then[key.namespace, key.name] = event.previous
        return then

    def _require(self, revision: int) -> None:
        if revision < self.compacted:
            raise Compacted(revision, self.compacted)

    def overfull(self) -> bool:
        """Return whether the window has outgrown its bounds."""
        return len(self._all) > self._max_events or self._bytes > self._max_bytes

    def trim(self, upto: int | None = None) -> list[int]:
        """Forget events, the oldest tenth or those up to *upto*, and say which rows that frees."""
        freed: list[int] = []
        for event in self._oldest(upto):
            self._bytes -= len(event.record.data)
            self._of[event.record.key.resource].popleft()
            self.compacted = event.revision
            freed.extend(event.superseded)
        return freed

    def _oldest(self, upto: int | None) -> Iterator[Event]:
        keep = int(len(self._all) * 0.9)
        while self._all:
            done = len(self._all) <= keep if upto is None else self._all[0].revision > upto
            if done:
                return
            yield self._all.popleft()
