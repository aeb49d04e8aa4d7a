"""Requests of the router's own: for a batch, a graph, a mirror or a log."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field
from typing import Final

from lockstep.serve.core.choice import NO_HINTS, Hints
from lockstep.serve.router.lane import Lane, Replica
from lockstep.serve.router.upstream import Pool, Upstream

MOST_ANSWER: Final = 256 << 20
CONNECT_SECONDS: Final = 5.0
_TRIES: Final = 3
Headers = list[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back."""

    status: int
    headers: Headers
    body: bytes

    @property
    def kind(self) -> bytes:
        """Return the type of its body."""
        return next((v for k, v in self.headers if k.lower() == b"content-type"), b"")


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that is whole."""

    method: bytes
    target: bytes
    headers: Headers = field(default_factory=list)
    """Without those of one connection, and without its length."""
    body: bytes = b""
    tenant: str = ""
    """The namespaces of its token, joined by commas; empty without a token."""

    def wire(self) -> bytes:
        """Return it as it is sent."""
        lines = [b"%b %b HTTP/1.1\r\n" % (self.method, self.target)]
        lines += [b"%b: %b\r\n" % pair for pair in self.headers]
        if not any(name.lower() == b"host" for name, _ in self.headers):
            lines.append(b"Host: replica\r\n")
        return b"".join(lines) + b"Content-Length: %d\r\n\r\n" % len(self.body) + self.body


class Call:
    """One such request under way."""

    def __init__(self, asked: Asked, hints: Hints = NO_HINTS) -> None:
        self._asked, self.hints = asked, hints
        self.held_bytes = len(asked.body)
        self._answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._lane: Lane | None = None
        self._replica: Replica | None = None
        self._pool: Pool | None = None
        self._upstream: Upstream | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._status, self._size, self._tries = 0, 0, 0
        self._headers: Headers = []
        self._body: list[bytes] = []

    async def through(self, lane: Lane) -> Answer:
        """Return the answer of a replica of *lane*, or the lane's own refusal."""
        self._lane = lane
        lane.admit(self)
        return await self._wait(lane.spec.timeout + lane.spec.hold.seconds)

    async def to(self, lane: Lane, replica: Replica) -> Answer:
        """Return the answer of one replica, beside what its lane sends to it."""
        self._lane = lane
        lane.begin(replica)
        self.go(replica)
        return await self._wait(lane.spec.timeout)

    async def at(self, pool: Pool, timeout: float) -> Answer:
        """Return the answer of a server that is no replica."""
        self._pool = pool
        self._send()
        return await self._wait(timeout)

    async def _wait(self, timeout: float) -> Answer:
        try:
            async with asyncio.timeout(timeout):
                return await self._answer
        except TimeoutError:
            self._abandon(504)
            return Answer(504, [], b'{"error": "no answer within %d s"}' % timeout)
        except asyncio.CancelledError:
            self._abandon(0)
            raise

    def _abandon(self, status: int) -> None:
        if self._connecting is not None:
            self._connecting.cancel()
        if self._upstream is not None:
            self._upstream.taker = None
            self._upstream.transport.abort()
        if self._replica is not None:
            self._leave(status)
        elif self._lane is not None:
            self._lane.forget(self)

    # --- from the lane ---

    def go(self, replica: Replica) -> None:
        """Send it to *replica*."""
        self._replica, self._pool = replica, replica.pool
        self._tries += 1
        self._send()

    def refuse(self, status: int, message: str, retry_after: int = 0) -> None:
        """Answer it with the router's own words."""
        headers = [(b"Retry-After", b"%d" % retry_after)] if retry_after else []
        self._settle(Answer(status, headers, b'{"error": "%b"}' % message.encode()))

    def _send(self) -> None:
        if self._pool is None:
            return
        found = self._pool.idle()
        if found is not None:
            self._begin(found)
        else:
            self._connecting = asyncio.ensure_future(self._connect(self._pool))

    async def _connect(self, pool: Pool) -> None:
        try:
            found = await pool.connect(CONNECT_SECONDS)
        except (OSError, TimeoutError):
            self._connecting = None
            self._failed()
            return
        self._connecting = None
        if self._answer.done():
            pool.give_back(found)
        else:
            self._begin(found)

    def _begin(self, upstream: Upstream) -> None:
        self._upstream = upstream
        self._body, self._size = [], 0
        upstream.begin(self, head_only=self._asked.method == b"HEAD")
        upstream.transport.write(self._asked.wire())

    # --- from the replica ---

    def on_head(self, status: int, headers: Headers, *, framed: bool) -> None:
        """Keep the head."""
        self._status, self._headers = status, list(headers)

    def on_body(self, data: bytes) -> None:
        """Keep a piece of the body."""
        self._size += len(data)
        if self._size <= MOST_ANSWER:
            self._body.append(data)

    def on_read(self) -> None:
        """The answer is taken whole."""

    def on_complete(self) -> None:
        """Give the answer to the request that waits for it."""
        self._upstream = None
        self._leave(self._status)
        if self._size > MOST_ANSWER:
            self._settle(Answer(502, [], b'{"error": "the answer is too large"}'))
        else:
            self._settle(Answer(self._status, self._headers, b"".join(self._body)))

    def on_lost(self) -> None:
        """Say that the replica was lost: it may have acted already."""
        self._upstream = None
        self._leave(502)
        self._settle(Answer(502, [], b'{"error": "the replica was lost before it answered"}'))

    def on_writable(self, writable: bool) -> None:
        """Nothing follows: the request was written whole."""

    def _failed(self) -> None:
        """Try again: no replica has seen it."""
        lane, replica = self._lane, self._replica
        again = lane is not None and self._tries < _TRIES and not self._answer.done()
        self._leave(0 if again else 502)
        if again and lane is not None and replica is not None:
            lane.again(self)
        else:
            self._settle(Answer(502, [], b'{"error": "no connection was accepted"}'))

    def _leave(self, status: int) -> None:
        replica, self._replica = self._replica, None
        if replica is not None and self._lane is not None:
            if status:
                self._lane.answered(replica, status)
            self._lane.done(replica)

    def _settle(self, answer: Answer) -> None:
        if not self._answer.done():
            self._answer.set_result(answer)


def beside(work: asyncio.Task[None], kept: set[asyncio.Task[None]]) -> None:
    """Keep a task that nothing waits for until it is over."""
    kept.add(work)
    work.add_done_callback(kept.discard)
    work.add_done_callback(_retrieve)


def _retrieve(task: asyncio.Task[None]) -> None:
    with contextlib.suppress(asyncio.CancelledError):
        task.exception()
