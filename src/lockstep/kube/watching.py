"""Reading the events of a watch from its stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
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
    while True:
        try:
            async with asyncio.timeout(silence):
                chunk = await anext(chunks)
        except StopAsyncIteration:
            return
        except TimeoutError:
            raise Unreachable("Silence", f"{call}: nothing came for {silence:g} s") from None
        yield chunk
