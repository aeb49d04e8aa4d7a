"""Handing each change to those who watch its resource."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence

from lockstep.apiserver.representation import Representation
from lockstep.apiserver.store import Event, Record

MAX_QUEUE = 10_000

Match = Callable[[Record], bool]


class Watcher:
    """One watch: a bounded queue of encoded lines, filled by the hub, emptied by its stream.

    A watcher that falls too far behind is marked ``overrun`` and gets nothing more: its stream
    ends, and the client resumes from the last version that it saw. Nothing is ever skipped.
    """

    def __init__(
        self,
        resource: str,
        namespace: str,
        match: Match | None,
        representation: Representation,
        *,
        max_queue: int = MAX_QUEUE,
    ) -> None:
        self.resource = resource
        self.overrun = False
        self.ended = False
        self._namespace = namespace
        self._match = match
        self._representation = representation
        self._max_queue = max_queue
        self._queue: deque[bytes] = deque()
        self._news = asyncio.Event()

    def selects(self, record: Record) -> bool:
        """Return whether the watch is about *record*."""
        if self._namespace and record.key.namespace != self._namespace:
            return False
        return self._match is None or self._match(record)

    def offer(self, event: Event) -> None:
        """Queue *event* if the watch is about it."""
        if self.overrun:
            return
        line = self.line(event)
        if line is None:
            return
        if len(self._queue) >= self._max_queue:
            self.overrun = True
            self._queue.clear()
        else:
            self._queue.append(line)
        self._news.set()

    def line(self, event: Event) -> bytes | None:
        """Return *event* as this watch sees it: an object may come into view or leave it."""
        if self._namespace and event.record.key.namespace != self._namespace:
            return None
        match, before = self._match, event.previous
        was = before is not None and (match is None or match(before))
        now = not event.deleted and (match is None or match(event.record))
        if now:
            return self._encode(event, "MODIFIED" if was else "ADDED")
        return self._encode(event, "DELETED") if was else None

    def _encode(self, event: Event, type_: str) -> bytes:
        left = type_ == "DELETED" and not event.deleted and event.previous is not None
        known = event.lines.get((type_, self._representation.key))
        if known is None:
            record = event.record
            if left and event.previous is not None:
                # It lives on, but out of sight: what is sent is what was last in view.
                record = event.previous.at(event.revision)
            known = self._representation.line(type_, record)
            event.lines[type_, self._representation.key] = known
        return known

    def take(self) -> list[bytes]:
        """Return what is queued and leave the queue empty."""
        lines = list(self._queue)
        self._queue.clear()
        self._news.clear()
        return lines

    async def wait(self, seconds: float) -> None:
        """Return when there is news, or after so many *seconds*."""
        try:
            async with asyncio.timeout(seconds):
                await self._news.wait()
        except TimeoutError:
            return

    def end(self) -> None:
        """End the stream after what is queued."""
        self.ended = True
        self._news.set()


class Hub:
    """Knows who watches which resource."""

    def __init__(self) -> None:
        self._watchers: dict[str, set[Watcher]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._watchers.values()))

    def publish(self, events: Sequence[Event]) -> None:
        """Offer each event to the watchers of its resource."""
        for event in events:
            for watcher in self._watchers.get(event.record.key.resource, ()):
                watcher.offer(event)

    def add(self, watcher: Watcher) -> None:
        """Offer *watcher* what is published from now on."""
        self._watchers.setdefault(watcher.resource, set()).add(watcher)

    def remove(self, watcher: Watcher) -> None:
        """Offer *watcher* nothing more."""
        watchers = self._watchers.get(watcher.resource, set())
        watchers.discard(watcher)
        if not watchers:
            self._watchers.pop(watcher.resource, None)

    def end(self, resource: str) -> None:
        """End the watches of a resource that is no longer served."""
        for watcher in self._watchers.get(resource, ()):
            watcher.end()
