"""One HTTP/1.1 connection of a client, as an asyncio protocol."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections import deque
from dataclasses import dataclass
from typing import cast
from urllib.parse import urlsplit

from lockstep.http.answers import AnswerReader, ProtocolError, write_request
from lockstep.kube.errors import Unreachable
from lockstep.kube.transport import Request, Response

STREAM_BUFFER = 1 << 20
"""Bytes of a stream that wait for their reader before the server is made to wait."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where the server is, and how its connections are secured."""

    url: str
    host: str
    port: int
    prefix: str
    """What comes before every target; empty but behind some proxies."""
    tls: ssl.SSLContext | None
    server_name: str | None

    @classmethod
    def of(cls, url: str, tls: ssl.SSLContext | None, server_name: str | None) -> Endpoint:
        """Read it from the server's URL."""
        parts = urlsplit(url)
        host, secure = parts.hostname or "", parts.scheme == "https"
        if secure and tls is None:
            tls = ssl.create_default_context()
        port = parts.port or (443 if secure else 80)
        prefix = parts.path.rstrip("/")
        return cls(url, host, port, prefix, tls, (server_name or host) if tls else None)

    @property
    def authority(self) -> str:
        """Return what goes into the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


class Channel(asyncio.Protocol):
    """One connection; it carries one request at a time."""

    def __init__(self, endpoint: Endpoint, siblings: set[Channel]) -> None:
        self._endpoint = endpoint
        self._siblings = siblings
        """The open connections, to be kept up to date."""
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._reader: AnswerReader | None = None
        self._pieces: deque[bytes] = deque()
        self._buffered = 0
        self._limit = 0
        """Bytes that may wait to be read; 0 while a whole answer is awaited."""
        self._paused = False
        self._waiter: asyncio.Future[None] | None = None
        self._error: Unreachable | None = None
        self.rests_since = 0.0

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Note that the connection is there."""
        # uvloop's transports are no subclasses of asyncio's, though they do the same.
        self._transport = cast("asyncio.Transport", transport)
        self._siblings.add(self)

    def data_received(self, data: bytes) -> None:
        """Read what came."""
        reader = self._reader
        if reader is None:
            # There is no request: the server says why it ends the connection, at most.
            self.abort()
            return
        try:
            piece = reader.feed(data)
        except ProtocolError as error:
            self._fail(Unreachable("Protocol", f"{self._endpoint.url}: {error}"))
            return
        if piece:
            self._pieces.append(piece)
            if self._limit:
                self._note_buffered(len(piece))
        if self._limit or reader.complete:
            self._wake()

    def eof_received(self) -> None:
        """Let asyncio close the connection."""

    def connection_lost(self, error: Exception | None) -> None:
        """Note the connection's end, and tell the requests that wait."""
        reader = self._reader
        self._transport = None
        self._siblings.discard(self)
        if reader is not None and not (reader.complete or (error is None and reader.end())):
            self._fail(self._broken(error))
        self._wake()

    # What the pool and streams call.

    @property
    def open(self) -> bool:
        """Whether a request can be sent."""
        return self._transport is not None and not self._transport.is_closing()

    @property
    def reusable(self) -> bool:
        """Whether the last answer is complete and another request may follow."""
        return self._reader is None and self.open

    @property
    def answered(self) -> bool:
        """Whether anything of the last request's answer came."""
        return self._reader is None or self._reader.began

    async def exchange(self, request: Request) -> Response:
        """Send a request and return the whole answer; without one, the connection is gone."""
        reader = self._send(request)
        try:
            while not reader.complete:
                await self._wait()
        except BaseException:
            self.abort()
            raise
        pieces = self._pieces
        body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        pieces.clear()
        self._reader = None
        if not reader.keep_alive:
            self.abort()
        return Response(reader.status, reader.headers, body)

    async def begin(self, request: Request) -> AnswerReader:
        """Send a request and return once the head of its answer is there."""
        self._limit = STREAM_BUFFER
        reader = self._send(request)
        while not reader.status:
            await self._wait()
        return reader

    async def read(self) -> bytes:
        """Return what came of a stream since the last call; nothing at its end."""
        while not self._pieces:
            if self._reader is None or self._reader.complete:
                return b""
            await self._wait()
        data = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()
        self._buffered = 0
        if self._paused and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()
        return data

    def abort(self) -> None:
        """Close the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    def _send(self, request: Request) -> AnswerReader:
        endpoint = self._endpoint
        if self._transport is None:
            text = f"{endpoint.url}: the connection was closed"
            raise Unreachable("Connection", text, acted=False)
        data = write_request(request, endpoint.authority, endpoint.prefix)
        reader = self._reader = AnswerReader(request.method)
        self._transport.write(data)
        return reader

    async def _wait(self) -> None:
        if self._error is not None:
            raise self._error
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None
        if self._error is not None and not self._pieces:
            raise self._error

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _fail(self, error: Unreachable) -> None:
        self._error = self._error or error
        self.abort()
        self._wake()

    def _note_buffered(self, count: int) -> None:
        self._buffered += count
        if self._buffered > self._limit and not self._paused and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()

    def _broken(self, error: Exception | None) -> Unreachable:
        if isinstance(error, ssl.SSLError):
            # With TLS 1.3 a refused client's certificate shows only now.
            return Unreachable("TLS", f"{self._endpoint.url}: TLS: {_say(error)}")
        began = self._reader is not None and self._reader.began
        text = "the connection broke in an answer" if began else "the connection was closed"
        if error is not None:
            text = f"{text}: {_say(error)}"
        return Unreachable("Connection", f"{self._endpoint.url}: {text}")


def unreachable(endpoint: Endpoint, error: Exception) -> Unreachable:
    """Return what *error* means for a connection that never came about."""
    if isinstance(error, ssl.SSLError):
        text = f"{endpoint.url}: TLS: {_say(error)}"
        return Unreachable("TLS", text, acted=False)
    return Unreachable("Connection", f"{endpoint.url}: {_say(error)}", acted=False)


def _say(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        # Its number is OpenSSL's and means something else to the operating system.
        return str(getattr(error, "verify_message", "") or error)
    if isinstance(error, OSError) and error.errno and error.errno > 0:
        return os.strerror(error.errno)
    return str(error) or type(error).__name__
