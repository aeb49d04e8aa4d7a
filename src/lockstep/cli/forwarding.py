"""Ports of a pod on this machine's loopback: one WebSocket for each connection."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence

import aiohttp

from lockstep.cli.connect import Session
from lockstep.cli.failure import CommandFailed
from lockstep.cli.output import note
from lockstep.kube.errors import ApiError
from lockstep.kube.sockets import websocket

PROTOCOLS = ("v4.channel.k8s.io",)
HOST = "127.0.0.1"
DATA, ERROR = 0, 1
CHUNK = 64 << 10


async def forward(session: Session, pod: str, ports: Sequence[tuple[int, int]]) -> None:
    """Serve ports until cancelled; *ports* are pairs of a local port and one of the pod.

    Raises:
        CommandFailed: when a local port is taken.
    """
    async with contextlib.AsyncExitStack() as stack:
        for local, remote in ports:

            async def connected(
                reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int = remote
            ) -> None:
                await _carry(session, pod, port, reader, writer)

            try:
                server = await asyncio.start_server(connected, HOST, local)
            except OSError as error:
                raise CommandFailed(
                    f"cannot listen on {HOST}:{local}: {error.strerror}", "0:PORT takes a free one"
                ) from None
            await stack.enter_async_context(server)
            taken = server.sockets[0].getsockname()[1]
            print(f"forwarding {HOST}:{taken} to port {remote} of pod {pod}", flush=True)
        await asyncio.Event().wait()


async def _carry(
    session: Session,
    pod: str,
    port: int,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> None:
    path = f"/api/v1/namespaces/{session.namespace}/pods/{pod}/portforward"
    try:
        async with websocket(
            session.client.config, path, [("ports", str(port))], PROTOCOLS
        ) as socket:
            sending = asyncio.create_task(_send(socket, reader))
            await _receive(socket, writer)
            sending.cancel()
    except ApiError as error:
        note(f"port {port}: {error}")
    except ConnectionError:
        return
    finally:
        writer.close()


async def _send(socket: aiohttp.ClientWebSocketResponse, reader: asyncio.StreamReader) -> None:
    while chunk := await reader.read(CHUNK):
        await socket.send_bytes(bytes([DATA]) + chunk)
    await socket.close()


async def _receive(socket: aiohttp.ClientWebSocketResponse, writer: asyncio.StreamWriter) -> None:
    greeted: set[int] = set()
    async for message in socket:
        if message.type is not aiohttp.WSMsgType.BINARY or not message.data:
            continue
        channel, data = message.data[0], message.data[1:]
        if channel not in greeted:  # each begins with the number of its port
            greeted.add(channel)
            data = data[2:]
        if channel == ERROR and data:
            note(data.decode(errors="replace"))
            return
        if channel == DATA and data:
            writer.write(data)
            await writer.drain()
