"""Connections to one replica, kept for further requests."""

from __future__ import annotations

import asyncio
import socket
from typing import Final, Protocol, cast

import httptools

IDLE_MOST = 64
"""Idle connections to one replica that are kept."""
_SILENT: Final = (
    (socket.TCP_KEEPIDLE, 2),
    (socket.TCP_KEEPINTVL, 1),
    (socket.TCP_USER_TIMEOUT, 5000),
)
"""A node that lost its power closes nothing: 5 s without a sign of its kernel end a connection."""


class Taker(Protocol):
    """Who takes the answer on a connection."""

    def on_head(self, status: int, headers: list[tuple[bytes, bytes]], *, framed: bool) -> None:
        """Take status and headers; *framed* says that the length of the body is known."""

    def on_body(self, data: bytes) -> None:
        """Take a piece of the body."""

    def on_read(self) -> None:
        """Take that all was passed on that came at once, and the answer goes on."""

    def on_complete(self) -> None:
        """Take the end of the answer; the connection is given back already."""

    def on_lost(self) -> None:
        """Take that the connection broke before the end of the answer."""

    def on_writable(self, writable: bool) -> None:
        """Take whether the replica reads as fast as the request comes."""


class Upstream(asyncio.Protocol):
    """One connection to a replica: one request at a time."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.taker: Taker | None = None
        self.used = False
        """Whether it has carried a request before the present one."""
        self._headers: list[tuple[bytes, bytes]] = []
        self._informational = False
        self._head_only = False
        self._until_close = False
        self._parser = httptools.HttpResponseParser(self)
        self.transport: asyncio.Transport

    def begin(self, taker: Taker, *, head_only: bool = False) -> None:
        """Carry one request for *taker*; *head_only* where the answer has no body."""
        self.taker = taker
        self._head_only = head_only
        self._until_close = False

    # --- asyncio ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport; have the kernel break it where the replica's node is silent."""
        self.transport = cast(asyncio.Transport, transport)
        wire = transport.get_extra_info("socket")
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in _SILENT:
            wire.setsockopt(socket.IPPROTO_TCP, option, value)

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell who waits for the answer; one that ends with the connection ends now."""
        self.pool.drop(self)
        taker, self.taker = self.taker, None
        if taker is not None and self._until_close and exc is None:
            taker.on_complete()
        elif taker is not None:
            taker.on_lost()

    def data_received(self, data: bytes) -> None:
        """Parse what the replica sent."""
        if self.taker is None:
            # Bytes without a request must not become the answer to the next one.
            self.transport.abort()
            return
        try:
            self._parser.feed_data(data)
            if self.taker is not None:
                self.taker.on_read()
        except httptools.HttpParserError:
            self.transport.abort()
        except httptools.HttpParserUpgrade:
            self.transport.abort()

    def pause_writing(self) -> None:
        """Have the client wait."""
        if self.taker is not None:
            self.taker.on_writable(False)

    def resume_writing(self) -> None:
        """Let the client go on."""
        if self.taker is not None:
            self.taker.on_writable(True)

    # --- httptools ---

    def on_message_begin(self) -> None:
        """Begin an answer; a second one to one request breaks the connection."""
        self._headers = []
        if self.taker is None:
            self.transport.abort()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take one header."""
        self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        """Pass on the head, unless more comes before the real one."""
        status = self._parser.get_status_code()
        self._informational = 100 <= status < 200
        if self._informational or self.taker is None:
            return
        names = {name.lower() for name, _ in self._headers}
        framed = b"content-length" in names or status in (204, 304) or self._head_only
        self._until_close = not framed and b"transfer-encoding" not in names
        self.taker.on_head(status, self._headers, framed=framed)
        if self._head_only:
            self._finish(keep=False)

    def on_body(self, data: bytes) -> None:
        """Pass on a piece."""
        if self.taker is not None:
            self.taker.on_body(data)

    def on_message_complete(self) -> None:
        """Give the connection back, then say that the answer is whole."""
        if not self._informational:
            self._finish(keep=self._parser.should_keep_alive())

    def _finish(self, *, keep: bool) -> None:
        taker, self.taker = self.taker, None
        if keep:
            self.used = True
            self.pool.give_back(self)
        else:
            self.pool.drop(self)
            self.transport.close()
        if taker is not None:
            taker.on_complete()


class Pool:
    """The connections to one replica."""

    def __init__(self, host: str, port: int) -> None:
        self.host, self.port = host, port
        self._idle: list[Upstream] = []
        self._all: set[Upstream] = set()

    def idle(self) -> Upstream | None:
        """Return a connection that is free now."""
        while self._idle:
            found = self._idle.pop()
            if not found.transport.is_closing():
                return found
        return None

    async def connect(self, timeout: float) -> Upstream:
        """Return a new connection.

        Raises:
            OSError: when the replica does not accept one in *timeout* seconds.
        """
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(timeout):
            _, found = await loop.create_connection(lambda: Upstream(self), self.host, self.port)
        self._all.add(found)
        return found

    def give_back(self, one: Upstream) -> None:
        """Keep a connection that is free again."""
        if len(self._idle) < IDLE_MOST:
            self._idle.append(one)
        else:
            one.transport.close()

    def drop(self, one: Upstream) -> None:
        """Forget a connection."""
        self._all.discard(one)
        if one in self._idle:
            self._idle.remove(one)

    def close(self) -> None:
        """Close the idle connections."""
        for one in self._idle:
            one.transport.close()
        self._idle.clear()
