"""The body of a watch response: where it starts, what it carries, when it ends."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, replace

from lockstep.apiserver.representation import Representation
from lockstep.apiserver.status import expired
from lockstep.apiserver.store import Compacted, Record, Store
from lockstep.apiserver.watch.hub import MAX_QUEUE, Hub, Match, Watcher
from lockstep.http import Stream
from lockstep.http.message import Write

_BOOKMARK_SECONDS = 60.0
_LAST_BOOKMARK_SECONDS = 2.0
_SHORTEST, _LONGEST = 1800.0, 3600.0
_CHUNK = 256 << 10


@dataclass(frozen=True, slots=True)
class WatchRequest:
    """What a watch asks for."""

    resource: str
    namespace: str
    match: Match | None
    representation: Representation
    revision: int | None
    """Where to resume; None for the present state and everything after it."""
    initial_events: bool
    """Whether the state at the start is sent as additions."""
    initial_bookmark: bool
    """Whether a bookmark says where that state ends (``sendInitialEvents``)."""
    bookmarks: bool
    timeout: float | None
    max_queue: int = MAX_QUEUE
    """Events that may wait for a slow client before it is cut off."""

    def starting_at(self, revision: int) -> WatchRequest:
        """Return the same watch, resumed at *revision*."""
        return replace(self, revision=revision)


def watch_stream(store: Store, hub: Hub, request: WatchRequest) -> Stream:
    """Return the response to a watch, which is registered before this returns.

    The state at the start is taken at the same instant, so nothing is missed or doubled.
    """
    watcher = Watcher(
        request.resource,
        request.namespace,
        request.match,
        request.representation,
        max_queue=request.max_queue,
    )
    lines: Iterator[bytes]
    try:
        if request.initial_events:
            lines = _additions(store, watcher, request)
        else:
            events = store.since(request.resource, request.revision or 0)
            lines = (line for event in events if (line := watcher.line(event)) is not None)
    except Compacted as gone:
        failure = request.representation.error(expired(str(gone)).to_object())
        return Stream(_only(failure), content_type=request.representation.stream_type)
    hub.add(watcher)
    body = _Body(store, hub, watcher, request, lines)
    return Stream(body.produce, content_type=request.representation.stream_type)


def _additions(store: Store, watcher: Watcher, request: WatchRequest) -> Iterator[bytes]:
    records = [r for r in store.objects(request.resource, request.namespace) if watcher.selects(r)]
    records.sort(key=Record.order)
    return (request.representation.line("ADDED", record) for record in records)


def _only(line: bytes) -> Callable[[Write], Awaitable[None]]:
    async def produce(write: Write) -> None:
        await write(line)

    return produce


class _Body:
    def __init__(
        self,
        store: Store,
        hub: Hub,
        watcher: Watcher,
        request: WatchRequest,
        lines: Iterator[bytes],
    ) -> None:
        self._store = store
        self._hub = hub
        self._watcher = watcher
        self._request = request
        self._start = store.revision
        self._lines = lines
        self._opened = False

    async def produce(self, write: Write) -> None:
        """Send what was there at the start, then what happens until the time is up."""
        try:
            await self._send_start(write)
            await self._follow(write)
        finally:
            self._hub.remove(self._watcher)

    async def _send_start(self, write: Write) -> None:
        chunk: list[bytes] = []
        size = 0
        for line in self._lines:
            chunk.append(self._said(line))
            size += len(line)
            if size > _CHUNK:
                await write(b"".join(chunk))
                chunk, size = [], 0
        if self._request.initial_bookmark:
            end = self._request.representation.bookmark(self._start, initial_end=True)
            chunk.append(self._said(end))
        if chunk:
            await write(b"".join(chunk))

    def _said(self, line: bytes) -> bytes:
        """Return a line as it is sent: the first of a stream may have to say more."""
        if self._opened:
            return line
        self._opened = True
        return self._request.representation.opened(line)

    async def _follow(self, write: Write) -> None:
        loop = asyncio.get_running_loop()
        timeout = self._request.timeout
        if timeout is None:
            # Spread out, so that clients that began together do not come back together.
            timeout = random.uniform(_SHORTEST, _LONGEST)  # noqa: S311
        end = loop.time() + timeout
        bookmark = self._first_bookmark(loop.time(), end)
        alarm = loop.call_at(min(end, bookmark), self._watcher.wake)
        try:
            while (now := loop.time()) < end and not self._watcher.overrun:
                if lines := self._watcher.take():
                    lines[0] = self._said(lines[0])
                    await write(b"".join(lines))
                    continue
                if self._watcher.ended:
                    return
                if now >= bookmark:
                    mark = self._request.representation.bookmark(self._store.revision)
                    await write(self._said(mark))
                    bookmark = now + _BOOKMARK_SECONDS
                    alarm = loop.call_at(min(end, bookmark), self._watcher.wake)
                await self._watcher.wait()
        finally:
            alarm.cancel()
        if not self._watcher.overrun and (lines := self._watcher.take()):
            lines[0] = self._said(lines[0])
            await write(b"".join(lines))

    def _first_bookmark(self, now: float, end: float) -> float:
        """Return when to say for the first time how far the stream is: in any case near its end."""
        if not self._request.bookmarks:
            return end
        last = end - _LAST_BOOKMARK_SECONDS
        return min(now + _BOOKMARK_SECONDS, last) if last > now else now + _BOOKMARK_SECONDS
