"""A connection that, once upgraded, is carried on to another server byte by byte."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

_CHUNK = 64 << 10


@dataclass(slots=True)
class Tunnel:
    """The answer to an upgrade: what the other server has said, and the way to it."""

    head: bytes
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    status: int = 101

    async def carry(self, send: Callable[[bytes], Awaitable[None]]) -> None:
        """Send what the other server says until it says no more, then close the way to it."""
        try:
            await send(self.head)
            while data := await self.reader.read(_CHUNK):
                await send(data)
        finally:
            self.writer.close()
            with contextlib.suppress(OSError):
                await self.writer.wait_closed()

    def pass_on(self, data: bytes) -> bool:
        """Pass on what the client says; return whether there is room for more."""
        if self.writer.is_closing():
            return True
        self.writer.write(data)
        return self.writer.transport.get_write_buffer_size() <= _CHUNK

    async def room(self) -> None:
        """Return when the other server has caught up, or is gone."""
        with contextlib.suppress(OSError):
            await self.writer.drain()
