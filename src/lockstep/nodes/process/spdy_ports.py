"""Ports of a pod within SPDY, as client-go forwards them.

For each connection the client opens two streams, one for errors and one for data, whose headers
name the port and carry the same request id.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

from lockstep.nodes.process.spdy import BadFrame, Data, Frame, Opened, Ping, Reader, Reset, Writer

Send = Callable[[bytes], Awaitable[None]]

SUBPROTOCOL: Final = "portforward.k8s.io"
_CHUNK: Final = 32 << 10
_MOST: Final = 256
"""Connections at once."""


@dataclass
class _Connection:
    """One connection to a port: its two streams, and the way to the port once it is there."""

    port: int
    streams: dict[str, int] = field(default_factory=dict)
    writer: asyncio.Future[asyncio.StreamWriter | None] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )


class SpdyPorts:
    """Connects streams with ports of one address."""

    def __init__(self, send: Send, address: str) -> None:
        self._send, self._address = send, address
        self._reader, self._writer = Reader(), Writer()
        self._by_request: dict[str, _Connection] = {}
        self._by_stream: dict[int, _Connection] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self, received: AsyncIterator[bytes]) -> None:
        """Copy both ways until the client is gone, or says what is not understood."""
        try:
            async for data in received:
                for frame in self._reader.feed(data):
                    await self._handle(frame)
        except BadFrame:
            return
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _handle(self, frame: Frame) -> None:
        match frame:
            case Opened():
                await self._open(frame)
            case Data():
                await self._pass_on(frame)
            case Reset(stream):
                self._give_up(stream)
            case Ping(number):
                await self._send(self._writer.ping(number))

    async def _open(self, opened: Opened) -> None:
        headers = opened.headers
        kind, port = headers.get("streamtype", ""), headers.get("port", "")
        if kind not in ("error", "data") or not port.isdecimal() or not 0 < int(port) < 1 << 16:
            await self._send(self._writer.reset(opened.stream))
            return
        request = headers.get("requestid", port)
        if request not in self._by_request and len(self._by_request) >= _MOST:
            await self._send(self._writer.reset(opened.stream))
            return
        connection = self._by_request.setdefault(request, _Connection(int(port)))
        connection.streams[kind] = opened.stream
        self._by_stream[opened.stream] = connection
        await self._send(self._writer.reply(opened.stream))
        if len(connection.streams) == 2:
            task = asyncio.create_task(self._connect(request, connection))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pass_on(self, data: Data) -> None:
        """Give the port what the client says on the data stream."""
        connection = self._by_stream.get(data.stream)
        if connection is None or connection.streams.get("data") != data.stream:
            return
        if len(connection.streams) < 2:
            return  # data before the client may send any
        writer = await connection.writer
        if writer is None:
            return
        with contextlib.suppress(OSError):
            writer.write(data.data)
            if data.ended:
                writer.write_eof()
            await writer.drain()

    def _give_up(self, stream: int) -> None:
        """Close a connection whose data the client no longer wants."""
        connection = self._by_stream.get(stream)
        if connection is None or connection.streams.get("data") != stream:
            return
        if connection.writer.done() and (writer := connection.writer.result()) is not None:
            writer.close()

    async def _connect(self, request: str, connection: _Connection) -> None:
        errors, stream = connection.streams["error"], connection.streams["data"]
        writer = None
        try:
            reader, writer = await asyncio.open_connection(self._address, connection.port)
            connection.writer.set_result(writer)
            while data := await reader.read(_CHUNK):
                await self._send(self._writer.data(stream, data))
        except OSError as error:
            text = f"an error occurred forwarding {connection.port}: {error}"
            await self._send(self._writer.data(errors, text.encode()))
        finally:
            if not connection.writer.done():
                connection.writer.set_result(None)
            if writer is not None:
                writer.close()
            self._by_request.pop(request, None)
            for number in (errors, stream):
                self._by_stream.pop(number, None)
        for number in (errors, stream):
            await self._send(self._writer.data(number, b"", ended=True))
