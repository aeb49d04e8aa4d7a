"""Handing each change to those who watch its resource."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence

from lockstep.apiserver.representation import Representation
from lockstep.apiserver.store import Event, Record

MAX_QUEUE = 10_000
PAUSE = 0.0002
"""Seconds after waking a watcher, for each that was woken: several times what its write costs."""
LONGEST_PAUSE = 0.01

Match = Callable[[Record], bool]
Later = Callable[[float, Callable[[], None]], object]
"""Calls a function after so many seconds."""


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

    def offer(self, event: Event) -> bool:
        """Queue *event* if the watch is about it; return whether its stream is to be woken."""
        if self.overrun:
            return False
        line = self.line(event)
        if line is None:
            return False
        if len(self._queue) >= self._max_queue:
            self.overrun = True
            self._queue.clear()
        else:
            self._queue.append(line)
        return True

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

    async def wait(self) -> None:
        """Return when there is news."""
        await self._news.wait()

    def wake(self) -> None:
        """Let the stream look: something is queued, or the time has come."""
        self._news.set()

    def end(self) -> None:
        """End the stream after what is queued."""
        self.ended = True
        self.wake()


def _later(seconds: float, call: Callable[[], None]) -> object:
    return asyncio.get_running_loop().call_later(seconds, call)


class Hub:
    """Knows who watches which resource.

    What happens in a storm reaches many watchers a few events at a time, as a write to a
    connection costs much more than one event more in it: the pause after waking watchers grows
    with their number. After a quiet moment they are woken at once.
    """

    def __init__(self, later: Later | None = None) -> None:
        self._later = later or _later
        self._watchers: dict[str, set[Watcher]] = {}
        self._waiting: set[Watcher] = set()
        """Who has something queued and was not woken yet."""
        self._pausing = False

    def __len__(self) -> int:
        return sum(map(len, self._watchers.values()))

    def publish(self, events: Sequence[Event]) -> None:
        """Offer each event to the watchers of its resource."""
        for event in events:
            for watcher in self._watchers.get(event.record.key.resource, ()):
                if watcher.offer(event):
                    self._waiting.add(watcher)
        if self._waiting and not self._pausing:
            self._wake()

    def _wake(self) -> None:
        """Wake those who wait, and let others wait until as much time has passed for each."""
        self._pausing = bool(self._waiting)
        if not self._pausing:
            return
        woken, self._waiting = self._waiting, set()
        for watcher in woken:
            watcher.wake()
        pause = min(LONGEST_PAUSE, PAUSE * len(woken))
        self._later(pause, self._wake)

    def add(self, watcher: Watcher) -> None:
        """Offer *watcher* what is published from now on."""
        self._watchers.setdefault(watcher.resource, set()).add(watcher)

    def remove(self, watcher: Watcher) -> None:
        """Offer *watcher* nothing more."""
        self._waiting.discard(watcher)
        watchers = self._watchers.get(watcher.resource, set())
        watchers.discard(watcher)
        if not watchers:
            self._watchers.pop(watcher.resource, None)

    def end(self, resource: str) -> None:
        """End the watches of a resource that is no longer served."""
        for watcher in self._watchers.get(resource, ()):
            watcher.end()
