"""The endpoints of a process on loopback: /healthz, /readyz and /metrics."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

Problems = Callable[[], list[str]]
"""What keeps the process from being ready; empty when it is."""

_REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found", 503: "Service Unavailable"}
HEAD_LIMIT = 16 * 1024
HEAD_TIMEOUT = 10.0


class HealthServer:
    """Answers GET on three paths; anything else is not found.

    That it answers at all says that the event loop runs, which is what /healthz is for.
    """

    def __init__(self, port: int, *, problems: Problems, metrics: Callable[[], bytes]) -> None:
        self._port = port
        self._problems = problems
        self._metrics = metrics
        self._server: asyncio.Server | None = None

    async def start(self) -> int:
        """Listen on loopback and return the port; port 0 chooses a free one.

        Raises:
            OSError: when the port is taken.
        """
        self._server = await asyncio.start_server(
            self._serve, "127.0.0.1", self._port, limit=HEAD_LIMIT
        )
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def close(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, TimeoutError):
            async with asyncio.timeout(HEAD_TIMEOUT):
                head = await _head(reader)
            status, kind, body = self._answer(head)
            writer.write(
                f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: {kind}\r\n"
                f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()
                + body
            )
            await writer.drain()
        writer.close()

    def _answer(self, head: bytes) -> tuple[int, str, bytes]:
        words = head.split(b"\r\n", 1)[0].split(b" ")
        if len(words) != 3 or words[0] not in (b"GET", b"HEAD"):
            return 400, "text/plain", b"only GET is answered\n"
        path = words[1].split(b"?", 1)[0]
        if path == b"/healthz":
            return 200, "text/plain", b"ok\n"
        if path == b"/readyz":
            problems = self._problems()
            text = "".join(f"{problem}\n" for problem in problems) or "ok\n"
            return (503 if problems else 200), "text/plain", text.encode()
        if path == b"/metrics":
            return 200, "text/plain; version=0.0.4; charset=utf-8", self._metrics()
        return 404, "text/plain", b"there are /healthz, /readyz and /metrics\n"


async def _head(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        return b""
