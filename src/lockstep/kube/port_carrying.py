"""One connection to a port of a pod, carried over a WebSocket to the API server."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final, NamedTuple

import aiohttp

from lockstep.kube.config import ClusterConfig
from lockstep.kube.sockets import websocket

PROTOCOLS: Final = ("v4.channel.k8s.io",)
DATA, ERROR = 0, 1
CHUNK: Final = 64 << 10


class Port(NamedTuple):
    """A port of a pod."""

    namespace: str
    pod: str
    port: int


async def carry(
    config: ClusterConfig,
    target: Port,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> str:
    """Carry bytes both ways until one side ends; return what the pod's node complains of.

    Raises:
        ApiError: when the API server refuses.
    """
    path = f"/api/v1/namespaces/{target.namespace}/pods/{target.pod}/portforward"
    try:
        async with websocket(config, path, [("ports", str(target.port))], PROTOCOLS) as socket:
            sending = asyncio.create_task(_send(socket, reader))
            try:
                return await _receive(socket, writer)
            finally:
                sending.cancel()
    except ConnectionError:
        return ""
    finally:
        writer.close()


async def _send(socket: aiohttp.ClientWebSocketResponse, reader: asyncio.StreamReader) -> None:
    with contextlib.suppress(ConnectionError):
        while chunk := await reader.read(CHUNK):
            await socket.send_bytes(bytes([DATA]) + chunk)
        await socket.close()


async def _receive(socket: aiohttp.ClientWebSocketResponse, writer: asyncio.StreamWriter) -> str:
    greeted: set[int] = set()
    async for message in socket:
        if message.type is not aiohttp.WSMsgType.BINARY or not message.data:
            continue
        channel, data = message.data[0], message.data[1:]
        if channel not in greeted:  # each begins with the number of its port
            greeted.add(channel)
            data = data[2:]
        if channel == ERROR and data:
            return bytes(data).decode(errors="replace")
        if channel == DATA and data:
            writer.write(data)
            await writer.drain()
    return ""
