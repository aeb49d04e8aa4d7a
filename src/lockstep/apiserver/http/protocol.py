"""One connection: requests in, responses out, in their order."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import cast

from lockstep.apiserver.http.message import Peer, Request, Response, Stream
from lockstep.apiserver.http.parsing import MAX_HEAD, BadRequest, Chunks, Head, parse_head
from lockstep.apiserver.http.tunnel import Tunnel

logger = logging.getLogger(__name__)

Handler = Callable[[Request], Awaitable[Response | Stream | Tunnel]]

_LINES = {s.value: f"HTTP/1.1 {s.value} {s.phrase}\r\n" for s in HTTPStatus}
_NOT_KEPT = "Cache-Control: no-cache, private\r\n"
_PIPELINED = 1 << 20
IDLE_SECONDS = 180.0
STALL_SECONDS = 30.0
"""For how long a stream waits for a client that has stopped reading."""


class HttpProtocol(asyncio.Protocol):
    """Serves one connection with *handler*.

    A request is handled once it is complete; what a client pipelines waits until the answer
    before it is out. A stream that the client does not read blocks its producer.
    """

    def __init__(self, handler: Handler, connections: set[HttpProtocol]) -> None:
        self._handler = handler
        self._connections = connections
        self._loop = asyncio.get_running_loop()
        self._buffer = bytearray()
        self._head: Head | None = None
        self._chunks: Chunks | None = None
        self._task: asyncio.Task[None] | None = None
        self._transport: asyncio.Transport
        self._peer = Peer()
        self._streaming = False
        self._tunnel: Tunnel | None = None
        self._waiting: asyncio.Task[None] | None = None
        self._lost = False
        self._writable: asyncio.Future[None] | None = None
        self._idle: asyncio.TimerHandle | None = None
        self.closed: asyncio.Future[None] = self._loop.create_future()
        """Done once the connection is gone."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Note who is there."""
        self._transport = cast(asyncio.Transport, transport)
        address = transport.get_extra_info("peername")
        ssl_object = transport.get_extra_info("ssl_object")
        self._peer = Peer(
            address[0] if address else "", ssl_object.getpeercert() if ssl_object else None
        )
        self._connections.add(self)
        self._wait_idle()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop a stream; a write under way is finished, for it may be durable already."""
        self._lost = True
        if not self.closed.done():
            self.closed.set_result(None)
        self._connections.discard(self)
        self.resume_writing()
        self._stop_waiting()
        if self._streaming and self._task:
            self._task.cancel()

    def data_received(self, data: bytes) -> None:
        """Collect bytes until a request is complete."""
        if self._tunnel is not None:
            self._pass_on(self._tunnel, data)
            return
        self._buffer += data
        if self._task is None:
            self._advance()
        elif len(self._buffer) > _PIPELINED:
            self._transport.pause_reading()

    def _advance(self) -> None:
        try:
            request = self._next_request()
        except BadRequest as error:
            self._refuse(error)
            return
        if request is not None:
            self._stop_waiting()
            self._task = self._loop.create_task(self._serve(request))

    def _next_request(self) -> Request | None:
        if self._head is None and not self._read_head():
            return None
        head = cast(Head, self._head)
        if self._chunks is not None:
            body = self._chunks.feed(self._buffer)
            if body is None:
                return None
        else:
            if len(self._buffer) < head.length:
                return None
            body = bytes(self._buffer[: head.length])
            del self._buffer[: head.length]
        return Request(head.method, head.target, head.headers, body, self._peer)

    def _read_head(self) -> bool:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._buffer) > MAX_HEAD:
                raise BadRequest(431, "the headers are too large")
            return False
        self._head = head = parse_head(bytes(self._buffer[:end]))
        del self._buffer[: end + 4]
        if head.length < 0:
            self._chunks = Chunks()
        if head.headers.get("expect", "").lower() == "100-continue":
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        return True

    async def _serve(self, request: Request) -> None:
        head = cast(Head, self._head)
        keep = False
        try:
            response = await self._handler(request)
            keep = head.keep_alive
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
        self._chunks = None
        self._streaming = False
        if not keep:
            self._transport.close()
        elif not self._lost:
            self._transport.resume_reading()
            if self._buffer:
                self._advance()
            if self._task is None:
                self._wait_idle()

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
        self._pass_on(tunnel, bytes(self._buffer))
        self._buffer.clear()
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
        body = error.message.encode()
        self._send(Response(error.status, body, "text/plain; charset=utf-8"), keep=False)
        self._transport.close()

    def _wait_idle(self) -> None:
        self._idle = self._loop.call_later(IDLE_SECONDS, self._leave)

    def _leave(self) -> None:
        if self._transport.get_write_buffer_size():
            self._transport.abort()
        else:
            self._transport.close()

    def _stop_waiting(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None

    def close(self) -> None:
        """End the connection: at once when nothing is under way, else after the answer."""
        if self._task is None:
            self._transport.close()
        elif self._streaming:
            self._task.cancel()
        elif self._head is not None:
            self._head.keep_alive = False


def _head(response: Response | Stream, *, keep: bool) -> str:
    lines = [_LINES[response.status], _NOT_KEPT]
    if response.content_type:
        lines.append(f"Content-Type: {response.content_type}\r\n")
    lines.extend(f"{name}: {value}\r\n" for name, value in response.headers)
    if not keep:
        lines.append("Connection: close\r\n")
    return "".join(lines)
