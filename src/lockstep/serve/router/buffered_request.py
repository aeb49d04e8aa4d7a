"""Requests that the router reads whole and answers by calls of its own: graphs and batches."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from lockstep.serve.router.calls import Answer, Asked
from lockstep.serve.router.exchange import HOP_BY_HOP, STATUS_LINES, Client, answer

log = logging.getLogger(__name__)

MOST_BODY: Final = 64 << 20
Work = Callable[[Asked], Awaitable[Answer]]


class BufferedRequest:
    """A request that is read whole, and answered by *work*."""

    def __init__(self, client: Client, asked: Asked, work: Work) -> None:
        self._client, self._asked, self._work = client, asked, work
        self._body: list[bytes] = []
        self._task: asyncio.Task[None] | None = None
        self.held_bytes = 0
        self.complete = False

    def feed(self, data: bytes) -> None:
        """Take a piece of the request's body."""
        self.held_bytes += len(data)
        if self.held_bytes <= MOST_BODY:
            self._body.append(data)

    def end(self) -> None:
        """Note that the request is whole."""
        self.complete = True

    def start(self) -> None:
        """Begin to answer it."""
        if self.held_bytes > MOST_BODY:
            self._client.write(answer(413, f"the body is larger than {MOST_BODY} bytes"))
            self._client.finished(keep=True)
            return
        self._task = asyncio.ensure_future(self._run())

    async def _run(self) -> None:
        asked = Asked(
            self._asked.method, self._asked.target, self._asked.headers, b"".join(self._body)
        )
        try:
            found = await self._work(asked)
        except Exception:
            log.exception("a request could not be answered")
            found = Answer(502, [], json.dumps({"error": "the router failed"}).encode())
        self._client.write(head_of(found) + found.body)
        self._client.finished(keep=not self._client.old)

    def abandon(self) -> None:
        """End it because its client is gone."""
        if self._task is not None:
            self._task.cancel()

    def hold_back(self, paused: bool) -> None:
        """Nothing is read for it meanwhile."""


def head_of(found: Answer) -> bytes:
    """Return the head of an answer that is there whole."""
    lines = [STATUS_LINES.get(found.status) or b"HTTP/1.1 %d \r\n" % found.status]
    lines += [
        b"%b: %b\r\n" % (name, value)
        for name, value in found.headers
        if name.lower() not in HOP_BY_HOP and name.lower() != b"content-length"
    ]
    if not any(name.lower() == b"content-type" for name, _ in found.headers):
        lines.append(b"Content-Type: application/json\r\n")
    return b"".join(lines) + b"Content-Length: %d\r\n\r\n" % len(found.body)
