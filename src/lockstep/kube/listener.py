"""A small HTTP server that answers GET on a few paths, for probes and scrapes."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from lockstep.http.requests import BadRequest, Received, RequestReader

HEAD_LIMIT: Final = 16 * 1024
TIMEOUT: Final = 10.0
"""Seconds for a whole exchange; whoever is slower is cut off."""
AT_ONCE: Final = 32
"""Connections that are served at a time; more are closed unheard."""

LOOPBACK: Final = "127.0.0.1"
EVERY_ADDRESS: Final = None


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked for."""

    path: str
    headers: Mapping[str, str]
    """By name in lower case."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What is said to it."""

    status: int
    body: bytes
    content_type: str = "text/plain"


Handler = Callable[[Request], Awaitable[Answer]]


def free_or(port: int) -> int:
    """Return *port* if it can be listened on, else 0: any free one."""
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((LOOPBACK, port))
        except OSError:
            return 0
    return port


class Listener:
    """Listens on one port and closes each connection after one answer."""

    def __init__(
        self, handler: Handler, *, host: str | None, port: int, tls: ssl.SSLContext | None = None
    ) -> None:
        self._handler = handler
        self._host = host
        self._port = port
        self._tls = tls
        self._open = 0
        self._server: asyncio.Server | None = None

    async def start(self) -> int:
        """Listen and return the port; port 0 chooses a free one.

        Raises:
            OSError: when the port is taken.
        """
        self._server = await asyncio.start_server(
            self._serve,
            self._host,
            self._port,
            limit=HEAD_LIMIT,
            ssl=self._tls,
            ssl_handshake_timeout=TIMEOUT if self._tls else None,
        )
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def close(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open += 1
        try:
            if self._open <= AT_ONCE:
                with contextlib.suppress(OSError, asyncio.IncompleteReadError, TimeoutError):
                    async with asyncio.timeout(TIMEOUT):
                        await self._exchange(reader, writer)
        finally:
            self._open -= 1
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        method, answer = "", Answer(400, b"this is no request\n")
        received = await _request(reader)
        if received is not None:
            head = received.head
            method, request = head.method, Request(head.target.partition("?")[0], head.headers)
            if method in ("GET", "HEAD"):
                answer = await self._handler(request)
            else:
                answer = Answer(405, b"only GET is answered\n")
        writer.write(
            f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}\r\n"
            f"Content-Type: {answer.content_type}\r\nContent-Length: {len(answer.body)}\r\n"
            "Connection: close\r\n\r\n".encode()
            + (b"" if method == "HEAD" else answer.body)
        )
        await writer.drain()


async def _request(reader: asyncio.StreamReader) -> Received | None:
    """Return the first request that comes, or nothing when it is none that is acceptable."""
    parser = RequestReader(max_head=HEAD_LIMIT, max_body=0)
    try:
        while not parser.ready:
            data = await reader.read(HEAD_LIMIT)
            if not data:
                raise ConnectionResetError
            parser.feed(data)
    except BadRequest:
        return parser.ready[0] if parser.ready else None
    finally:
        parser.close()
    return parser.ready[0]
