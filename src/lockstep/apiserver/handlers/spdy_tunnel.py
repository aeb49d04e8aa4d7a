"""A client's SPDY connection, carried to the agent of a node within a WebSocket.

Clients of Go before Kubernetes 1.31, and programs that use client-go's older dialer, upgrade to
SPDY itself; agents take SPDY within a WebSocket alone, as newer clients send it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from lockstep.http import Tunnel

if TYPE_CHECKING:
    import aiohttp

SPDY: Final = "SPDY/3.1"
PORT_FORWARD: Final = "portforward.k8s.io"
_HEAD: Final = (
    "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
    f"Upgrade: {SPDY}\r\nX-Stream-Protocol-Version: {PORT_FORWARD}\r\n\r\n"
).encode()
_WAITING: Final = 256 << 10
"""Bytes of a client that may wait for the agent."""


class SpdyTunnel(Tunnel):
    """The agent's end is *socket*, in which the subprotocol has been agreed on."""

    def __init__(
        self, session: aiohttp.ClientSession, socket: aiohttp.ClientWebSocketResponse
    ) -> None:
        self._session, self._socket = session, socket
        self._waiting = bytearray()
        self._news, self._room = asyncio.Event(), asyncio.Event()

    async def carry(self, send: Callable[[bytes], Awaitable[None]]) -> None:
        """Send the head, and what the agent says until it says no more; then close."""
        pump = asyncio.create_task(self._pump())
        try:
            await send(_HEAD)
            async for message in self._socket:
                if isinstance(message.data, bytes):
                    await send(message.data)
        finally:
            pump.cancel()
            self._room.set()
            await asyncio.gather(pump, return_exceptions=True)
            await self._socket.close()
            await self._session.close()

    def pass_on(self, data: bytes) -> bool:
        """Keep what the client says for the agent; return whether there is room for more."""
        self._waiting += data
        self._news.set()
        return len(self._waiting) <= _WAITING

    async def room(self) -> None:
        """Return when the agent has caught up, or is gone."""
        self._room.clear()
        if self._waiting and not self._socket.closed:
            await self._room.wait()

    async def _pump(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            data, self._waiting = bytes(self._waiting), bytearray()
            if data:
                await self._socket.send_bytes(data)
            self._room.set()
