"""Reading the events of a watch from its stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from types import TracebackType
from typing import TypeVar

from lockstep.api.wire import Wire
from lockstep.kube.codec import WatchEvent, decode_event
from lockstep.kube.connection import Call, Connection
from lockstep.kube.errors import Status, Unreachable, from_status
from lockstep.kube.lines import LineSplitter

T = TypeVar("T", bound=Wire)


async def events(
    connection: Connection, call: Call, type_: type[T], *, deadline: float, silence: float | None
) -> AsyncGenerator[WatchEvent[T], None]:
    """Yield the events that *call* brings until the server ends it.

    Raises:
        ApiError: what an ERROR event says, or what the stream's end means.
    """
    stream = await connection.open(call, deadline)
    splitter = LineSplitter()
    try:
        async for chunk in _unless_silent(stream.chunks(), silence, call):
            for line in splitter.feed(chunk):
                event = decode_event(type_, line)
                if isinstance(event, Status):
                    raise from_status(event, what=str(call))
                yield event
    finally:
        await stream.close()


async def _unless_silent(
    chunks: AsyncIterator[bytes], silence: float | None, call: Call
) -> AsyncIterator[bytes]:
    if silence is None:
        async for chunk in chunks:
            yield chunk
        return
    watchdog = _Watchdog(silence)
    try:
        while True:
            watchdog.fed()
            with watchdog:
                chunk = await anext(chunks, b"")
            if not chunk:
                return
            yield chunk
    except TimeoutError:
        raise Unreachable("Silence", f"{call}: nothing came for {silence:g} s") from None
    finally:
        watchdog.end()


class _Watchdog:
    """Ends a wait for a stream that has been silent for too long.

    A stream brings thousands of pieces a second, and a timer for each would cost as much as reading
    them. There is one, which looks now and then how long ago the last piece came.
    """

    def __init__(self, silence: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._silence = silence
        self._fed = self._loop.time()
        self._waiting: asyncio.Task[object] | None = None
        self._cancelling = 0
        self._bitten = False
        self._timer = self._loop.call_later(silence, self._look)

    def fed(self) -> None:
        """Note that something came."""
        self._fed = self._loop.time()

    def end(self) -> None:
        """Look no more."""
        self._timer.cancel()

    def _look(self) -> None:
        left = self._fed + self._silence - self._loop.time()
        if left > 0:
            self._timer = self._loop.call_later(left, self._look)
        elif self._waiting is not None:
            self._bitten = True
            self._waiting.cancel()
        else:
            # Who reads the stream is busy with what came; the silence begins afterwards.
            self._timer = self._loop.call_later(self._silence, self._look)

    def __enter__(self) -> None:
        self._waiting = task = asyncio.current_task()
        self._cancelling = 0 if task is None else task.cancelling()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        task, self._waiting = self._waiting, None
        if not self._bitten or task is None:
            return
        self._bitten = False
        # A cancellation from outside at the same moment must not be taken for the watchdog's.
        if task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise TimeoutError from error
