"""The part of the kubelet's interface that runs commands beside containers and reaches ports."""

from __future__ import annotations

import asyncio
import contextlib
import struct
from collections.abc import AsyncIterator, Awaitable, Sequence
from typing import Any, Protocol

from aiohttp import WSMsgType, web

from lockstep.nodes.process import channels, logs, remote, spdy
from lockstep.nodes.process.log_server import NoLog, Shelf, admit, flag
from lockstep.nodes.process.remote import Remote
from lockstep.nodes.process.spdy_ports import SUBPROTOCOL, SpdyPorts

PORT_PROTOCOLS = ("v4.channel.k8s.io", f"{spdy.PROTOCOL}+{SUBPROTOCOL}")
"""Two channels for each port, or a tunnel for SPDY, in which kubectl speaks."""
CHUNK = 32 << 10
PING_SECONDS = 30.0
GOODBYE_SECONDS = 1.0
"""For how long a client may take to agree that the connection ends; some never do."""


class NoContainer(Exception):
    """There is no such container, or it does not run."""


class Running(Protocol):
    """Where the node's running containers are found."""

    def orders(self, namespace: str, pod: str, container: str, argv: list[str]) -> dict[str, Any]:
        """Return the orders for a command beside a container.

        Raises:
            NoContainer: when there is none that runs.
        """

    def address(self, namespace: str, pod: str) -> str:
        """Return the address on which a pod listens.

        Raises:
            NoContainer: when there is no such pod.
        """


class RemoteServer:
    """Serves ``/exec``, ``/attach`` and ``/portForward`` within WebSockets."""

    def __init__(self, running: Running, shelf: Shelf) -> None:
        self._running, self._shelf = running, shelf

    def routes(self) -> list[web.RouteDef]:
        """Return what it serves."""
        container = "{namespace}/{pod}/{container}"
        return [
            web.get(f"/exec/{container}", self._exec),
            web.get(f"/attach/{container}", self._attach),
            web.get("/portForward/{namespace}/{pod}", self._forward),
        ]

    async def _exec(self, request: web.Request) -> web.StreamResponse:
        admit(request)
        part, query = request.match_info, request.query
        argv = query.getall("command", [])
        if not argv:
            raise web.HTTPBadRequest(text="you must specify at least 1 command\n")
        try:
            orders = self._running.orders(part["namespace"], part["pod"], part["container"], argv)
        except (NoContainer, OSError) as error:
            raise web.HTTPNotFound(text=f"{error}\n") from error
        socket = await _socket(request, channels.PROTOCOLS)
        try:
            command = await remote.run(orders, stdin=flag(query, "stdin"), tty=flag(query, "tty"))
        except OSError as error:
            await socket.send_bytes(channels.failed(str(error)))
            await socket.close()
            return socket
        await _converse(socket, command)
        return socket

    async def _attach(self, request: web.Request) -> web.StreamResponse:
        admit(request)
        part = request.match_info
        try:
            log, running = self._shelf.find(
                part["namespace"], part["pod"], part["container"], previous=False
            )
        except NoLog as error:
            raise web.HTTPNotFound(text=f"{error}\n") from error
        socket = await _socket(request, channels.PROTOCOLS)

        async def follow() -> None:
            async for piece in logs.read(log, logs.Query(follow=True, tail=0), running):
                await socket.send_bytes(bytes([channels.STDOUT]) + piece)
            await socket.send_bytes(channels.ended(0))

        await _until_either(follow(), _ignore(socket))
        await socket.close()
        return socket

    async def _forward(self, request: web.Request) -> web.StreamResponse:
        admit(request)
        part = request.match_info
        try:
            address = self._running.address(part["namespace"], part["pod"])
            given = request.query.getall("ports", [])
            ports = [int(port) for port in ",".join(given).split(",")] if given else []
        except ValueError as error:
            raise web.HTTPBadRequest(text="ports must be numbers\n") from error
        except NoContainer as error:
            raise web.HTTPNotFound(text=f"{error}\n") from error
        tunnel = f"{spdy.PROTOCOL}+" in request.headers.get("Sec-WebSocket-Protocol", "")
        if not ports and not tunnel:
            raise web.HTTPBadRequest(text="you must specify the ports\n")
        socket = await _socket(request, PORT_PROTOCOLS)
        if tunnel:
            await SpdyPorts(socket.send_bytes, address).serve(_contents(socket))
        else:
            await _Ports(socket, address, ports).serve()
        await socket.close()
        return socket


class _Ports:
    """Connections to ports of a pod, two channels of the socket each: data and errors."""

    def __init__(self, socket: web.WebSocketResponse, address: str, ports: list[int]) -> None:
        self._socket, self._address, self._ports = socket, address, ports
        self._writers: dict[int, asyncio.StreamWriter] = {}

    async def serve(self) -> None:
        """Copy both ways until the client or all ports have closed."""
        for number, port in enumerate(self._ports):
            for channel in (2 * number, 2 * number + 1):
                await self._socket.send_bytes(bytes([channel]) + struct.pack("<H", port))
        async with contextlib.AsyncExitStack() as stack:
            readers = []
            for number, port in enumerate(self._ports):
                try:
                    reader, writer = await asyncio.open_connection(self._address, port)
                except OSError as error:
                    text = f"an error occurred forwarding {port}: {error}"
                    await self._socket.send_bytes(bytes([2 * number + 1]) + text.encode())
                    continue
                stack.callback(writer.close)
                self._writers[2 * number] = writer
                readers.append(self._copy(2 * number, reader))
            await _until_either(_all(readers), self._listen())

    async def _copy(self, channel: int, reader: asyncio.StreamReader) -> None:
        while data := await reader.read(CHUNK):
            await self._socket.send_bytes(bytes([channel]) + data)

    async def _listen(self) -> None:
        async for channel, data in _messages(self._socket):
            if writer := self._writers.get(channel):
                writer.write(data)
                await writer.drain()


async def _socket(request: web.Request, protocols: tuple[str, ...]) -> web.WebSocketResponse:
    asked = request.headers.get("Sec-WebSocket-Protocol", "")
    if asked and not set(protocols).intersection(map(str.strip, asked.split(","))):
        text = f"unable to upgrade: {asked} is not served, only {', '.join(protocols)}\n"
        raise web.HTTPBadRequest(text=text)
    socket = web.WebSocketResponse(
        protocols=protocols, heartbeat=PING_SECONDS, timeout=GOODBYE_SECONDS, max_msg_size=0
    )
    if not socket.can_prepare(request).ok:
        text = "unable to upgrade: only WebSocket connections are served here\n"
        raise web.HTTPBadRequest(text=text)
    await socket.prepare(request)
    return socket


async def _converse(socket: web.WebSocketResponse, command: Remote) -> None:
    """Carry a command's input and output until it ends or the client is gone."""

    async def tell() -> None:
        async for channel, data in command.output():
            await socket.send_bytes(bytes([channel]) + data)
        await socket.send_bytes(channels.ended(await command.exit_code()))

    try:
        await _until_either(tell(), _hear(socket, command))
    finally:
        await command.end()
    await socket.close()


async def _hear(socket: web.WebSocketResponse, command: Remote) -> None:
    async for channel, data in _messages(socket):
        if channel == channels.STDIN:
            await command.say(data)
        elif channel == channels.RESIZE and (size := channels.size(data)):
            command.resize(size)
        elif channel == channels.CLOSE and data[:1] == bytes([channels.STDIN]):
            command.close_input()


async def _messages(socket: web.WebSocketResponse) -> AsyncIterator[tuple[int, bytes]]:
    """Yield channel and content of each message; some clients send text as such."""
    async for message in socket:
        if message.type in (WSMsgType.BINARY, WSMsgType.TEXT) and message.data:
            data = message.data.encode() if isinstance(message.data, str) else message.data
            yield data[0], data[1:]


async def _contents(socket: web.WebSocketResponse) -> AsyncIterator[bytes]:
    """Yield each message as it is."""
    async for message in socket:
        if message.type == WSMsgType.BINARY:
            yield message.data


async def _ignore(socket: web.WebSocketResponse) -> None:
    async for _ in socket:
        pass


async def _all(work: Sequence[Awaitable[None]]) -> None:
    await asyncio.gather(*work)


async def _until_either(*work: Awaitable[None]) -> None:
    """Return when the first of them has ended, with its error if it has one; end the others."""
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    for outcome in outcomes:
        # A client that has gone away is no error of ours.
        if isinstance(outcome, Exception) and not isinstance(outcome, ConnectionError):
            raise outcome
