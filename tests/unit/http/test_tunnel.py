"""An upgraded connection: bytes go both ways as they are, and each end's end is the other's."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator

import pytest

from lockstep.http import ByteTunnel, Connections, HttpProtocol, Request, Tunnel

HEAD = b"HTTP/1.1 101 Switching Protocols\r\n\r\n"
UPGRADE = b"GET /x HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"


class Echo:
    """A server that sends back what it gets, and says farewell at the word ``bye``."""

    def __init__(self) -> None:
        self.gone = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while (data := await reader.read(1 << 16)) and data != b"bye":
            writer.write(data)
            await writer.drain()
        self.gone.set()
        writer.close()


@pytest.fixture
async def echo() -> AsyncIterator[tuple[Echo, int]]:
    """A server whose connections are carried on to an echo, and its port."""
    behind = Echo()
    upstream = await asyncio.start_server(behind.serve, "127.0.0.1", 0)
    target = upstream.sockets[0].getsockname()[1]

    async def handler(_: Request) -> Tunnel:
        return ByteTunnel(HEAD, *await asyncio.open_connection("127.0.0.1", target))

    loop = asyncio.get_running_loop()
    front = await loop.create_server(lambda: HttpProtocol(handler, Connections()), "127.0.0.1", 0)
    yield behind, front.sockets[0].getsockname()[1]
    front.close()
    upstream.close()


async def upgraded(
    port: int, early: bytes = b""
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(UPGRADE + early)
    assert await reader.readexactly(len(HEAD)) == HEAD
    return reader, writer


@pytest.mark.parametrize("size", [1, 100_000, 8 << 20])
async def test_bytes_come_back_as_they_were(echo: tuple[Echo, int], size: int) -> None:
    reader, writer = await upgraded(echo[1])
    data = os.urandom(size)
    sending = asyncio.create_task(_send(writer, data))
    assert await reader.readexactly(size) == data
    await sending
    writer.close()


async def test_what_came_with_the_request_is_passed_on(echo: tuple[Echo, int]) -> None:
    reader, writer = await upgraded(echo[1], early=b"early")
    assert await reader.readexactly(5) == b"early"
    writer.close()


async def test_the_clients_end_ends_the_other_side(echo: tuple[Echo, int]) -> None:
    _, writer = await upgraded(echo[1])
    writer.close()
    await asyncio.wait_for(echo[0].gone.wait(), 10)


async def test_the_other_sides_end_ends_the_connection(echo: tuple[Echo, int]) -> None:
    reader, writer = await upgraded(echo[1])
    writer.write(b"bye")
    assert await asyncio.wait_for(reader.read(), 10) == b""
    writer.close()


async def _send(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(data)
    await writer.drain()
