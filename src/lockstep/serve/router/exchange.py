"""One request on its way to a replica, and the answer on its way back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from http import HTTPStatus
from typing import ClassVar, Final, Protocol

from lockstep.serve.core.choice import NO_HINTS, Hints
from lockstep.serve.router.lane import Lane, Replica
from lockstep.serve.router.upstream import Upstream

CONNECT_SECONDS: Final = 5.0
HOP_BY_HOP: Final = frozenset(
    (
        b"connection",
        b"keep-alive",
        b"proxy-connection",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
        b"expect",
    )
)
_IDEMPOTENT: Final = frozenset((b"GET", b"HEAD", b"OPTIONS", b"PUT", b"DELETE"))
_TRIES: Final = 3
WHOLE: Final = 1 << 20
"""Bodies up to so many bytes are read whole before a replica gets them."""


class Client(Protocol):
    """Who sent the request."""

    def write(self, data: bytes) -> None:
        """Send bytes to it."""

    def finished(self, *, keep: bool) -> None:
        """Note that the answer is out; *keep* unless the connection cannot be used further."""

    def pause(self, paused: bool) -> None:
        """Stop, or go on, reading from it."""

    @property
    def old(self) -> bool:
        """Tell whether it speaks HTTP/1.0."""


class Tap(Protocol):
    """What sees requests and answers pass: logs and mirrors."""

    def request(self, head: bytes, body: bytes, *, whole: bool) -> None:
        """Take a request, or its beginning where it is not *whole*."""

    def answer(self, status: int) -> None:
        """Take the status of the answer."""

    def piece(self, data: bytes) -> None:
        """Take a piece of the answer."""

    def end(self) -> None:
        """Take the end of the answer."""


class Exchange:
    """A request and its answer."""

    waits: ClassVar = False
    """Whether its body, up to a limit, is needed to choose a replica."""
    openai: ClassVar = False
    """Whether its client expects errors as OpenAI's objects, whichever service it is for."""
    __slots__ = (
        "_answered",
        "_chunked",
        "_client",
        "_connecting",
        "_out",
        "_replica",
        "_retriable",
        "_sent",
        "_tap",
        "_timer",
        "_tries",
        "_upstream",
        "body",
        "complete",
        "head",
        "held_bytes",
        "hints",
        "lane",
        "length",
        "method",
        "over",
    )

    def __init__(
        self,
        client: Client,
        lane: Lane,
        method: bytes,
        head: bytes,
        length: int | None,
        *,
        hints: Hints = NO_HINTS,
        tap: Tap | None = None,
    ) -> None:
        self._client, self.lane, self.method = client, lane, method
        self.hints = hints
        self._tap = tap
        self.head = head
        """The request's head for the replica, without what says how long its body is."""
        self.length = length
        """Length of the body; None when it comes in chunks."""
        self.body: list[bytes] = []
        self.held_bytes = 0
        self.complete = False
        self.over = False
        self._answered = False
        self._chunked = False
        self._out: list[bytes] = []
        """What came of the answer and was not sent on yet."""
        self._replica: Replica | None = None
        self._upstream: Upstream | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._tries = 0
        self._sent = False
        """Whether parts of the body went out that are not kept."""
        self._retriable = method in _IDEMPOTENT

    def start(self) -> None:
        """Ask the lane for a replica."""
        self.lane.admit(self)

    # --- from the client ---

    def feed(self, data: bytes) -> None:
        """Take a piece of the request's body."""
        if self._upstream is not None:
            self._sent = True
            self._write_body(self._upstream, data)
            return
        self.body.append(data)
        self.held_bytes += len(data)
        if self.held_bytes >= WHOLE:
            self._client.pause(True)

    def end(self) -> None:
        """Note that the request is whole."""
        self.complete = True
        if self._upstream is not None and self.length is None:
            self._upstream.transport.write(b"0\r\n\r\n")

    def abandon(self) -> None:
        """End it because its client is gone."""
        if self.over:
            return
        self.over = True
        if self._replica is None:
            self.lane.forget(self)
        else:
            self._drop_upstream()
            self._leave()

    def hold_back(self, paused: bool) -> None:
        """Stop, or go on, reading the answer from the replica."""
        if self._upstream is not None:
            transport = self._upstream.transport
            (transport.pause_reading if paused else transport.resume_reading)()

    # --- from the lane ---

    def go(self, replica: Replica) -> None:
        """Send it to *replica*."""
        self._replica = replica
        self._tries += 1
        found = replica.pool.idle()
        if found is not None:
            self._begin(found)
        else:
            self._connecting = asyncio.ensure_future(self._connect(replica))

    def refuse(self, status: int, message: str, retry_after: int = 0) -> None:
        """Answer it here."""
        self.over = True
        openai = self.openai or bool(self.lane.spec.models)
        shape = openai_error if openai else plain_error
        self._client.write(
            answer(status, message, retry_after, close=not self.complete, shape=shape)
        )
        self._client.finished(keep=self.complete)

    async def _connect(self, replica: Replica) -> None:
        try:
            found = await replica.pool.connect(CONNECT_SECONDS)
        except (OSError, TimeoutError):
            self._connecting = None
            self._failed(sure=True)
            return
        self._connecting = None
        if self.over:
            replica.pool.give_back(found)
            return
        self._begin(found)

    def _begin(self, upstream: Upstream) -> None:
        self._upstream = upstream
        upstream.begin(self, head_only=self.method == b"HEAD")
        body = b"".join(self.body)
        whole = self.complete
        if self._tap is not None:
            self._tap.request(self.head, body, whole=whole)
        if whole:
            head = self.head + (b"Content-Length: %d\r\n\r\n" % len(body) if body else b"\r\n")
            if self.length == 0 and self.method not in _IDEMPOTENT:
                head = self.head + b"Content-Length: 0\r\n\r\n"
            upstream.transport.write(head + body)
            self.length = len(body)
        else:
            how = (
                b"Transfer-Encoding: chunked\r\n\r\n"
                if self.length is None
                else b"Content-Length: %d\r\n\r\n" % self.length
            )
            upstream.transport.write(self.head + how)
            self.body.clear()
            self._sent = True
            if body:
                self._write_body(upstream, body)
            self._client.pause(False)
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self.lane.spec.timeout, self._too_late)

    def _write_body(self, upstream: Upstream, data: bytes) -> None:
        if self.length is None:
            data = b"%x\r\n%b\r\n" % (len(data), data)
        upstream.transport.write(data)

    # --- from the replica ---

    def on_writable(self, writable: bool) -> None:
        """Let the client wait while the replica reads slowly."""
        self._client.pause(not writable)

    def on_head(self, status: int, headers: list[tuple[bytes, bytes]], *, framed: bool) -> None:
        """Send the head of the answer on."""
        self._answered = True
        self._stop_timer()
        if self._tap is not None:
            self._tap.answer(status)
        if self._replica is not None:
            self.lane.answered(self._replica, status)
        lines = [STATUS_LINES.get(status) or b"HTTP/1.1 %d \r\n" % status]
        lines += [
            b"%b: %b\r\n" % (name, value)
            for name, value in headers
            if name.lower() not in HOP_BY_HOP
        ]
        self._chunked = not framed and not self._client.old
        if self._chunked:
            lines.append(b"Transfer-Encoding: chunked\r\n")
        if (not framed and self._client.old) or not self.complete:
            lines.append(b"Connection: close\r\n")
        elif self._client.old:
            lines.append(b"Connection: keep-alive\r\n")
        lines.append(b"\r\n")
        self._out = lines

    def on_body(self, data: bytes) -> None:
        """Send a piece of the answer on."""
        if self._tap is not None:
            self._tap.piece(data)
        self._out.append(b"%x\r\n%b\r\n" % (len(data), data) if self._chunked else data)

    def on_read(self) -> None:
        """Write what came at once at once: a system call costs as much as all else."""
        if self._out:
            out, self._out = self._out, []
            self._client.write(b"".join(out))

    def on_complete(self) -> None:
        """Finish the answer."""
        self.over = True
        if self._tap is not None:
            self._tap.end()
        self._upstream = None
        self._stop_timer()
        if self._chunked:
            self._out.append(b"0\r\n\r\n")
        self.on_read()
        self._leave()
        # What was left unread of a request would be taken for the next one.
        self._client.finished(keep=self.complete and (self._chunked or not self._client.old))

    def on_lost(self) -> None:
        """Try again where that is safe; else say that the replica was lost."""
        self._upstream = None
        if self._answered:
            self.over = True
            self.on_read()
            self._leave()
            self._client.finished(keep=False)
        else:
            self._failed(sure=False)

    def _failed(self, *, sure: bool) -> None:
        """Try again unless the replica may have acted already; *sure* when it has not."""
        self._stop_timer()
        lost = self._replica
        self._leave()
        if self.over:
            return
        again = (sure or self._retriable) and not self._sent and self._tries < _TRIES
        if lost is not None and not again:
            self.lane.answered(lost, 502)
        if again:
            self._replica = None
            self.lane.again(self)
        else:
            self.refuse(502, "the replica was lost before it answered", 1)

    def _too_late(self) -> None:
        self._timer = None
        if self.over or self._answered:
            return
        self._drop_upstream()
        if self._replica is not None:
            self.lane.answered(self._replica, 504)
        self._leave()
        self.refuse(504, f"no answer within {self.lane.spec.timeout} s")

    def _drop_upstream(self) -> None:
        if self._connecting is not None:
            self._connecting.cancel()
        if self._upstream is not None:
            self._upstream.taker = None
            self._upstream.transport.abort()
            self._upstream = None
        self._stop_timer()

    def _leave(self) -> None:
        replica, self._replica = self._replica, None
        if replica is not None:
            self.lane.done(replica)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


STATUS_LINES: Final = {
    one.value: f"HTTP/1.1 {one.value} {one.phrase}\r\n".encode() for one in HTTPStatus
}


Shape = Callable[[int, str], str | dict[str, str | None]]
"""From status and words an error as its client reads it."""
_CODES: Final = {401: "invalid_api_key", 404: "model_not_found", 429: "rate_limit_exceeded"}


def plain_error(status: int, message: str) -> str:
    """Return an error as KServe writes it: its words."""
    return message


def openai_error(status: int, message: str) -> dict[str, str | None]:
    """Return an error as OpenAI writes it, an object that clients of theirs read."""
    kind = "server_error" if status >= 500 else "invalid_request_error"
    return {
        "message": message,
        "type": "rate_limit_error" if status == 429 else kind,
        "param": "model" if status == 404 else None,
        "code": _CODES.get(status),
    }


def answer(
    status: int,
    message: str,
    retry_after: int = 0,
    *,
    close: bool = False,
    headers: bytes = b"",
    shape: Shape = plain_error,
) -> bytes:
    """Return an answer of the router's own, with the error in a *shape*."""
    body = json.dumps({"error": shape(status, message)}).encode()
    head = STATUS_LINES[status] + b"Content-Type: application/json\r\n" + headers
    if retry_after:
        head += b"Retry-After: %d\r\n" % retry_after
    if close:
        head += b"Connection: close\r\n"
    return head + b"Content-Length: %d\r\n\r\n" % len(body) + body
