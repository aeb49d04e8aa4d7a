"""One connection: requests in, responses out, in their order."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import cast

from lockstep.http.connections import Connections
from lockstep.http.message import Peer, Request, Response, Stream
from lockstep.http.requests import ORDINARY, BadRequest, Bounds, Head, RequestReader
from lockstep.http.tunnel import Tunnel

logger = logging.getLogger(__name__)

Handler = Callable[[Request], Awaitable[Response | Stream | Tunnel]]
Admit = Callable[[Request], Response | None]
"""Returns the refusal of a request whose body has not come yet, or nothing."""

_LINES = {s.value: f"HTTP/1.1 {s.value} {s.phrase}\r\n" for s in HTTPStatus}
_NOT_KEPT = "Cache-Control: no-cache, private\r\n"
_PIPELINED = 1 << 20
IDLE_SECONDS = 180.0
"""For how long a connection may rest between two requests."""
HEAD_SECONDS = 10.0
"""For how long a request's head may take, and the first one to begin."""
BODY_SECONDS = 60.0
"""For how long a request's body may take."""
STALL_SECONDS = 30.0
"""For how long a stream waits for a client that has stopped reading."""


class HttpProtocol(asyncio.Protocol):
    """Serves one connection with *handler*.

    A request is handled once it is complete; what a client pipelines waits until the answer
    before it is out. A stream that the client does not read blocks its producer. With *admit*
    a request that has a body may be refused before the body comes.
    """

    def __init__(
        self,
        handler: Handler,
        connections: Connections,
        admit: Admit | None = None,
        bounds: Bounds = ORDINARY,
    ) -> None:
        self._handler = handler
        self._once = bounds.once
        self._admit = admit
        self._connections = connections
        self._loop = asyncio.get_running_loop()
        self._reader = RequestReader(self._begin, bounds)
        self._refusal: BadRequest | None = None
        self._head: Head | None = None
        """The head of the request that is being handled."""
        self._task: asyncio.Task[None] | None = None
        self._transport: asyncio.Transport
        self._peer = Peer()
        self._streaming = False
        self._expected = False
        """Whether the client waits for a word before it sends the body that comes next."""
        self._tunnel: Tunnel | None = None
        self._waiting: asyncio.Task[None] | None = None
        self._lost = False
        self._writable: asyncio.Future[None] | None = None
        self._patience: asyncio.TimerHandle | None = None
        self._limit: asyncio.TimerHandle | None = None
        """Ends a connection that is to last for one answer."""
        self._awaits = ""
        self.closed: asyncio.Future[None] = self._loop.create_future()
        """Done once the connection is gone."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Note who is there."""
        self._transport = cast(asyncio.Transport, transport)
        address = transport.get_extra_info("peername")
        ssl_object = transport.get_extra_info("ssl_object")
        certificate = ssl_object.getpeercert() if ssl_object else None
        known, ends = bool(certificate), (address, transport.get_extra_info("sockname"))
        self._peer = Peer(str(address[0]) if address else "", certificate, known, ends)
        if not self._connections.add(self, self._peer.address, known=known):
            self._refusal = BadRequest(503, "too many connections")
            self._refuse(self._refusal)
            return
        self._wait("head")
        if self._once:
            self._limit = self._loop.call_later(HEAD_SECONDS, self._transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop a stream; a write under way is finished, for it may be durable already."""
        self._lost = True
        if not self.closed.done():
            self.closed.set_result(None)
        self._connections.remove(self)
        self.resume_writing()
        self._stop_waiting()
        if self._limit is not None:
            self._limit.cancel()
        self._reader.close()
        if self._streaming and self._task:
            self._task.cancel()

    def data_received(self, data: bytes) -> None:
        """Collect bytes until a request is complete."""
        if self._tunnel is not None:
            self._pass_on(self._tunnel, data)
            return
        if self._refusal is not None:
            return
        try:
            self._reader.feed(data)
        except BadRequest as refusal:
            self._refusal = refusal
        if self._task is None:
            self._advance()
        elif self._reader.ready or len(self._reader.rest) > _PIPELINED:
            self._transport.pause_reading()

    def _begin(self, head: Head) -> None:
        if self._admit is not None and head.has_body:
            request = Request(head.method, head.target, head.headers, b"", self._peer)
            refused = self._admit(request)
            if refused is not None:
                raise BadRequest(refused.status, "", refused)
        self._expected = head.headers.get("expect", "").lower() == "100-continue"

    def _let_come(self) -> None:
        """Have the client send the body it waits with; after the answer to the request before."""
        if self._expected:
            self._expected = False
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def _advance(self) -> None:
        if self._reader.ready:
            self._stop_waiting()
            self._head, body = self._reader.ready.popleft()
            head = self._head
            request = Request(head.method, head.target, head.headers, body, self._peer)
            self._task = self._loop.create_task(self._serve(request))
        elif self._refusal is not None:
            self._refuse(self._refusal)
        elif self._reader.head is not None:
            self._let_come()
            self._wait("body")
        elif self._reader.began:
            self._wait("head")

    async def _serve(self, request: Request) -> None:
        head = cast(Head, self._head)
        keep = False
        try:
            response = await self._handler(request)
            keep = head.keep_alive and not self._reader.rest and not self._once
            if isinstance(response, Tunnel):
                keep = False
                await self._carry(response)
            elif isinstance(response, Stream):
                await self._stream(response, keep=keep)
            elif not self._lost:
                self._send(response, keep=keep, bodyless=request.method == "HEAD")
        except (ConnectionError, asyncio.CancelledError):
            keep = False
        except Exception:
            # The handler turns its own errors into answers, so the stream broke off: only
            # closing tells the client that what it has is not the whole.
            keep = False
            logger.exception("%s %s failed", request.method, request.path)
        self._finish(keep=keep)

    def _finish(self, *, keep: bool) -> None:
        self._task = None
        self._head = None
        self._streaming = False
        if self._peer.known:
            self._connections.know(self)
        if not keep:
            self._transport.close()
        elif not self._lost:
            self._transport.resume_reading()
            self._advance()
            if self._task is None and not self._reader.began:
                self._wait("rest")

    def _send(self, response: Response, *, keep: bool, bodyless: bool = False) -> None:
        head = _head(response, keep=keep) + f"Content-Length: {len(response.body)}\r\n\r\n"
        self._transport.write(head.encode("latin-1") + (b"" if bodyless else response.body))

    async def _stream(self, stream: Stream, *, keep: bool) -> None:
        self._streaming = True
        head = _head(stream, keep=keep) + "Transfer-Encoding: chunked\r\n\r\n"
        self._transport.write(head.encode("latin-1"))
        await stream.produce(self._write_chunk)
        self._transport.write(b"0\r\n\r\n")

    async def _carry(self, tunnel: Tunnel) -> None:
        """Pass bytes on in both directions until either end closes."""
        self._streaming = True
        self._tunnel = tunnel
        self._pass_on(tunnel, bytes(self._reader.rest))
        self._reader.rest.clear()
        await tunnel.carry(self._write)

    def _pass_on(self, tunnel: Tunnel, data: bytes) -> None:
        if not tunnel.pass_on(data) and self._waiting is None:
            self._transport.pause_reading()
            self._waiting = self._loop.create_task(self._go_on(tunnel))

    async def _go_on(self, tunnel: Tunnel) -> None:
        await tunnel.room()
        self._waiting = None
        if not self._lost:
            self._transport.resume_reading()

    async def _write_chunk(self, data: bytes) -> None:
        await self._write(b"%x\r\n%b\r\n" % (len(data), data) if data else b"")

    async def _write(self, data: bytes) -> None:
        if self._lost:
            raise ConnectionResetError("the client is gone")
        if data:
            self._transport.write(data)
        if self._writable is not None:
            try:
                async with asyncio.timeout(STALL_SECONDS):
                    await self._writable
            except TimeoutError:
                # What is buffered will never be read, so there is nothing to wait for.
                self._transport.abort()
                raise ConnectionAbortedError("the client has stopped reading") from None

    def pause_writing(self) -> None:
        """Make producers wait: the client does not read as fast as they write."""
        if self._writable is None:
            self._writable = self._loop.create_future()

    def resume_writing(self) -> None:
        """Let producers go on."""
        if self._writable is not None:
            if not self._writable.done():
                self._writable.set_result(None)
            self._writable = None

    def _refuse(self, error: BadRequest) -> None:
        text = "text/plain; charset=utf-8"
        self._send(error.answer or Response(error.status, error.message.encode(), text), keep=False)
        self._transport.close()

    def _wait(self, what: str) -> None:
        """Close the connection unless *what* is there in time: a head, a body, or the next one."""
        if what == self._awaits:
            return
        self._stop_waiting()
        self._awaits = what
        seconds = {"head": HEAD_SECONDS, "body": BODY_SECONDS, "rest": IDLE_SECONDS}[what]
        self._patience = self._loop.call_later(seconds, self.drop)

    def _stop_waiting(self) -> None:
        self._awaits = ""
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def drop(self) -> None:
        """End the connection at once; what was answered is still sent if the client reads it."""
        if self._transport.get_write_buffer_size():
            self._transport.abort()
        else:
            self._transport.close()

    def close(self) -> None:
        """End the connection: at once when nothing is under way, else after the answer."""
        if self._task is None:
            self._transport.close()
        elif self._streaming:
            self._task.cancel()
        elif self._head is not None:
            self._head.keep_alive = False


def _head(response: Response | Stream, *, keep: bool) -> str:
    lines = [_LINES[response.status]]
    if not any(name == "Cache-Control" for name, _ in response.headers):
        lines.append(_NOT_KEPT)
    if response.content_type:
        lines.append(f"Content-Type: {response.content_type}\r\n")
    lines.extend(f"{name}: {value}\r\n" for name, value in response.headers)
    if not keep:
        lines.append("Connection: close\r\n")
    return "".join(lines)
