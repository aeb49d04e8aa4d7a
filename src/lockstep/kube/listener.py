"""A small HTTP server that answers GET on a few paths, for probes and scrapes."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

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
        method, request = _parse(await _head(reader))
        if request is None:
            answer = Answer(400, b"this is no request\n")
        elif method not in ("GET", "HEAD"):
            answer = Answer(405, b"only GET is answered\n")
        else:
            answer = await self._handler(request)
        writer.write(
            f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}\r\n"
            f"Content-Type: {answer.content_type}\r\nContent-Length: {len(answer.body)}\r\n"
            "Connection: close\r\n\r\n".encode()
            + (b"" if method == "HEAD" else answer.body)
        )
        await writer.drain()


async def _head(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        return b""


def _parse(head: bytes) -> tuple[str, Request | None]:
    first, *lines = head.decode("latin-1").split("\r\n")
    words = first.split(" ")
    if len(words) != 3:
        return "", None
    fields = (line.partition(":") for line in lines if line)
    headers = {name.strip().lower(): value.strip() for name, _, value in fields}
    return words[0], Request(words[1].partition("?")[0], headers)
