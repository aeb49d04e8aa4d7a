"""A connection that, once upgraded, is carried on to another server."""

from __future__ import annotations

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Final

_CHUNK = 64 << 10


class Tunnel(ABC):
    """The answer to an upgrade: what the client is told, and the way to the other server."""

    status: Final = 101

    @abstractmethod
    async def carry(self, send: Callable[[bytes], Awaitable[None]]) -> None:
        """Send the head, and what the other server says until it says no more; then close."""

    @abstractmethod
    def pass_on(self, data: bytes) -> bool:
        """Pass on what the client says; return whether there is room for more."""

    @abstractmethod
    async def room(self) -> None:
        """Return when the other server has caught up, or is gone."""


class ByteTunnel(Tunnel):
    """A tunnel that carries bytes as they are."""

    def __init__(
        self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._head, self._reader, self._writer = head, reader, writer

    async def carry(self, send: Callable[[bytes], Awaitable[None]]) -> None:
        """Send the head, and what the other server says until it says no more; then close."""
        try:
            await send(self._head)
            while data := await self._reader.read(_CHUNK):
                await send(data)
        finally:
            self._writer.close()
            with contextlib.suppress(OSError):
                await self._writer.wait_closed()

    def pass_on(self, data: bytes) -> bool:
        """Pass on what the client says; return whether there is room for more."""
        if self._writer.is_closing():
            return True
        self._writer.write(data)
        return self._writer.transport.get_write_buffer_size() <= _CHUNK

    async def room(self) -> None:
        """Return when the other server has caught up, or is gone."""
        with contextlib.suppress(OSError):
            await self._writer.drain()
