"""Pooled connections against a server that does exactly what it is told."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
import pytest_asyncio
from tests.support.waiting import eventually

from lockstep.kube import http_transport
from lockstep.kube.errors import Unreachable
from lockstep.kube.http_transport import HttpTransport
from lockstep.kube.transport import Request

GET = Request("GET", "/version", {"Accept": "application/json"})
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Server:
    """Hands every connection to *serve*, which may be changed at any time."""

    def __init__(self) -> None:
        self.connections = 0
        self.open = 0
        self.serve: Serve = self.answer
        self.url = ""
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._take, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def close(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        self.open += 1
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                await self.serve(reader, writer)
        finally:
            self.open -= 1
            self._tasks.discard(task)
            writer.close()

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(OK)


@pytest_asyncio.fixture
async def server() -> AsyncIterator[Server]:
    running = Server()
    await running.start()
    yield running
    await running.close()


@pytest_asyncio.fixture
async def transport(server: Server) -> AsyncIterator[HttpTransport]:
    made = HttpTransport(server.url, None)
    yield made
    await made.close()


async def test_requests_one_after_the_other_share_a_connection(
    server: Server, transport: HttpTransport
) -> None:
    for _ in range(3):
        assert (await transport.send(GET)).body == b"{}"
    assert server.connections == 1


async def test_no_more_connections_than_agreed_and_everybody_gets_a_turn(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_transport, "MAX_CONNECTIONS", 3)
    transport = HttpTransport(server.url, None)
    answers = await asyncio.gather(*(transport.send(GET) for _ in range(50)))
    assert {answer.status for answer in answers} == {200}
    assert server.connections == 3
    await transport.close()


async def test_a_connection_that_the_server_closed_meanwhile_is_not_used(
    server: Server, transport: HttpTransport
) -> None:
    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK)

    server.serve = once
    await transport.send(GET)
    await eventually(lambda: not server.open)
    assert (await transport.send(GET)).status == 200
    assert server.connections == 2


@pytest.mark.parametrize(("method", "again"), [("GET", True), ("POST", False), ("PATCH", False)])
async def test_only_reads_are_repeated_when_a_pooled_connection_ends(
    server: Server, transport: HttpTransport, method: str, again: bool
) -> None:
    asked: list[bytes] = []

    async def twice(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK)
        asked.append(await reader.readuntil(b"\r\n\r\n"))

    server.serve = twice
    await transport.send(GET)
    server.serve = server.answer
    sending = transport.send(Request(method, "/x", {}))
    if again:
        assert (await sending).status == 200
    else:
        with pytest.raises(Unreachable) as caught:
            await sending
        assert caught.value.acted
    assert len(asked) == 1
    assert server.connections == (2 if again else 1)


async def test_a_connection_that_rested_for_too_long_is_not_used(
    server: Server, transport: HttpTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_transport, "IDLE_SECONDS", -1.0)
    await transport.send(GET)
    await transport.send(GET)
    assert server.connections == 2
    await eventually(lambda: not server.open)


async def test_a_connection_on_which_the_server_speaks_unasked_is_closed(
    server: Server, transport: HttpTransport
) -> None:
    answered = asyncio.Event()

    async def chatty(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK)
        await answered.wait()
        writer.write(OK)
        await reader.read()

    server.serve = chatty
    await transport.send(GET)
    answered.set()
    await eventually(lambda: not server.open)


async def test_closing_is_respected(server: Server, transport: HttpTransport) -> None:
    async def closing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        await reader.read()

    server.serve = closing
    assert (await transport.send(GET)).body == b"{}"
    await eventually(lambda: not server.open)


async def test_a_cancelled_request_takes_its_connection_with_it(
    server: Server, transport: HttpTransport
) -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    server.serve = silent
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await transport.send(GET)
    await eventually(lambda: not server.open)
    server.serve = server.answer
    assert (await transport.send(GET)).status == 200


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (b"", "Connection"),
        (OK[:-1], "Connection"),
        (OK[:20], "Connection"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "Protocol"),
    ],
    ids=["nothing", "half a body", "half a head", "something else"],
)
async def test_a_missing_answer_may_have_been_acted_on(
    server: Server, transport: HttpTransport, said: bytes, reason: str
) -> None:
    async def breaking(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(said)

    server.serve = breaking
    with pytest.raises(Unreachable) as caught:
        await transport.send(GET)
    assert caught.value.reason == reason
    assert caught.value.acted
    assert server.url in str(caught.value)


async def test_a_server_that_is_not_there_has_not_acted(server: Server) -> None:
    await server.close()
    transport = HttpTransport(server.url, None)
    for attempt in (transport.send, transport.open):
        with pytest.raises(Unreachable, match="refused") as caught:
            await attempt(GET)
        assert not caught.value.acted


async def test_an_unknown_host_counts_as_a_missing_answer() -> None:
    with pytest.raises(Unreachable) as caught:
        await HttpTransport("http://no-such-host.invalid", None).send(GET)
    assert not caught.value.acted


STREAM = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


async def test_a_stream_delivers_data_as_it_arrives_and_ends_properly(
    server: Server, transport: HttpTransport
) -> None:
    more = asyncio.Event()

    async def streaming(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(STREAM + b"3\r\none\r\n")
        await more.wait()
        writer.write(b"3\r\ntwo\r\n0\r\n\r\n")
        await reader.read()

    server.serve = streaming
    stream = await transport.open(GET)
    chunks = stream.chunks()
    assert await anext(chunks) == b"one"
    more.set()
    assert [chunk async for chunk in chunks] == [b"two"]
    await stream.close()
    await stream.close()
    await eventually(lambda: not server.open)


async def test_a_broken_stream_delivers_what_came_and_then_fails(
    server: Server, transport: HttpTransport
) -> None:
    async def breaking(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(STREAM + b"3\r\none\r\n3\r\ntw")

    server.serve = breaking
    stream = await transport.open(GET)
    came = b""
    with pytest.raises(Unreachable):
        async for chunk in stream.chunks():
            came += chunk
    assert came == b"onetw"


async def test_the_end_of_the_transport_ends_what_is_under_way(
    server: Server, transport: HttpTransport
) -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(STREAM)
        await reader.read()

    server.serve = silent
    stream = await transport.open(GET)
    waiting = asyncio.create_task(transport.send(GET))
    await eventually(lambda: server.open == 2)
    await transport.close()
    with pytest.raises(Unreachable):
        await waiting
    with pytest.raises(Unreachable):
        await anext(stream.chunks())
