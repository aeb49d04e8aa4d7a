"""The HTTP protocol: however the bytes arrive, the same requests come out."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.waiting import eventually

from lockstep.http import Connections, HttpProtocol, Request, Response, Stream
from lockstep.http.message import Write
from lockstep.http.requests import MAX_BODY, BadRequest, Bounds, RequestReader

WITHIN = 10.0


class Transport(asyncio.Transport):
    """Keeps what is written, and who closed it."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.closed = False

    def write(self, data: Any) -> None:
        self.written += bytes(data)

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = True

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


REQUESTS = (
    b"GET /one?a=1&b=%20x HTTP/1.1\r\nHost: h\r\n\r\n"
    b"POST /two HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello"
    b"PUT /three HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n"
    b"DELETE /fo%20ur HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
)
EXPECTED = [
    ("GET", "/one", b""),
    ("POST", "/two", b"hello"),
    ("PUT", "/three", b"abcde"),
    ("DELETE", "/fo ur", b""),
]


async def feed(pieces: list[bytes]) -> tuple[list[tuple[str, str, bytes]], Transport]:
    seen: list[tuple[str, str, bytes]] = []

    async def handler(request: Request) -> Response:
        seen.append((request.method, request.path, request.body))
        return Response(body=request.path.encode())

    transport = Transport()
    protocol = HttpProtocol(handler, Connections())
    protocol.connection_made(transport)
    for piece in pieces:
        protocol.data_received(piece)
        await asyncio.sleep(0)
    for _ in range(20):
        await asyncio.sleep(0)
    protocol.connection_lost(None)
    return seen, transport


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.integers(0, len(REQUESTS)), max_size=12))
def test_requests_may_be_cut_anywhere(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(REQUESTS)]
    pieces = [REQUESTS[a:b] for a, b in pairwise(edges)]
    seen, transport = asyncio.run(feed(pieces))
    assert seen == EXPECTED
    assert transport.written.count(b"HTTP/1.1 200 OK\r\n") == 4
    assert transport.written.endswith(b"/fo ur")
    assert transport.closed


GET = b"GET / HTTP/1.1\r\n"
PUT = b"PUT / HTTP/1.1\r\nHost: h\r\n"
CHUNKED = PUT + b"Transfer-Encoding: chunked\r\n\r\n"
END = b"\r\n\r\n"
REFUSED = {
    "half a request line": (b"GET /\r\n" + END, 400),
    "another version": (b"GET / HTTP/2.0\r\nHost: h" + END, 400),
    "a method with a bracket": (b"BR(W / HTTP/1.1\r\nHost: h" + END, 400),
    "a target without a slash": (b"GET x HTTP/1.1\r\nHost: h" + END, 400),
    "a line feed in the target": (b"GET /?command=x\nEvil:1 HTTP/1.1\r\nHost: h" + END, 400),
    "a control character in the target": (b"GET /\x01 HTTP/1.1\r\nHost: h" + END, 400),
    "no host": (GET + END[2:], 400),
    "two hosts": (GET + b"Host: a\r\nHost: b" + END, 400),
    "two credentials": (PUT + b"Authorization: a\r\nAuthorization: b" + END, 400),
    "no colon": (PUT + b"no colon" + END, 400),
    "a space before the colon": (PUT + b"Name : value" + END, 400),
    "a folded header": (PUT + b"A: b\r\n folded: value" + END, 400),
    "a line feed in a value": (PUT + b"A: b\nEvil: 1" + END, 400),
    "a null in a value": (PUT + b"A: b\0" + END, 400),
    "lines that end with a line feed": (b"GET / HTTP/1.1\nHost: h\n\n", 400),
    "two lengths": (PUT + b"Content-Length: 1\r\nContent-Length: 1" + END, 400),
    "a length with a sign": (PUT + b"Content-Length: +1" + END, 400),
    "length and chunks": (PUT + b"Content-Length: 1\r\nTransfer-Encoding: chunked" + END, 400),
    "an unknown encoding": (PUT + b"Transfer-Encoding: gzip" + END, 400),
    "two encodings": (PUT + b"Transfer-Encoding: gzip, chunked" + END, 400),
    "a body that is too long": (PUT + b"Content-Length: 4000000" + END, 413),
    "a head that is too long": (PUT + b"A: " + b"b" * 70_000 + END, 431),
    "a head without an end": (PUT + b"A: " + b"b" * 70_000, 431),
    "a target that is too long": (b"GET /" + b"b" * 70_000, 431),
    "a chunk size in words": (CHUNKED + b"x\r\n", 400),
    "a chunk size below zero": (CHUNKED + b"-1\r\n", 400),
    "a chunk size with 0x": (CHUNKED + b"0x2\r\nab\r\n", 400),
    "a chunk size with a plus": (CHUNKED + b"+2\r\nab\r\n", 400),
    "a chunk size with an underscore": (CHUNKED + b"0_2\r\nab\r\n", 400),
    "a chunk that is longer than it said": (CHUNKED + b"2\r\nabXX0\r\n\r\n", 400),
    "a chunk size without an end": (CHUNKED + b"1" * 70_000, 400),
    "chunks that are too long": (CHUNKED + b"4\r\nabcd\r\n" * (MAX_BODY // 4 + 1), 413),
    "trailers that are too long": (CHUNKED + b"0\r\n" + b"A: bcdefgh\r\n" * 7_000, 431),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("size", [7, 1 << 30], ids=["in pieces", "at once"])
def test_what_is_no_acceptable_request_is_refused(name: str, size: int) -> None:
    data, status = REFUSED[name]
    step = max(size, len(data) // 2_000)
    reader = RequestReader()
    with pytest.raises(BadRequest) as refused:
        for start in range(0, len(data), step):
            reader.feed(data[start : start + step])
    assert refused.value.status == status
    assert not reader.ready


def test_chunk_extensions_without_an_end_are_bounded() -> None:
    reader = RequestReader(bounds=Bounds(body=1000))
    reader.feed(CHUNKED)
    with pytest.raises(BadRequest):
        for _ in range(100):
            reader.feed(b"1;a=" if not _ else b"b" * 1000)


class Clock:
    """Collects what a protocol wants to be called for, and when."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.waits: list[float] = []
        loop = asyncio.get_running_loop()
        later = loop.call_later

        def call_later(seconds: float, call: Any, *args: Any) -> asyncio.TimerHandle:
            self.waits.append(seconds)
            return later(0.01, call, *args)

        monkeypatch.setattr(loop, "call_later", call_later)


@pytest.mark.parametrize(
    ("sent", "waits"),
    [
        (b"", [10.0]),
        (b"GET / HT", [10.0]),
        (b"PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nabc", [10.0, 60.0]),
        (b"GET / HTTP/1.1\r\nHost: h\r\n\r\n", [10.0, 180.0]),
        (b"GET / HTTP/1.1\r\nHost: h\r\n\r\nGET /", [10.0, 10.0]),
    ],
    ids=["nothing", "half a head", "half a body", "a whole request", "a request and a half"],
)
async def test_a_connection_that_keeps_the_server_waiting_is_closed(
    monkeypatch: pytest.MonkeyPatch, sent: bytes, waits: list[float]
) -> None:
    async def handler(_: Request) -> Response:
        return Response()

    clock, transport = Clock(monkeypatch), Transport()
    protocol = HttpProtocol(handler, Connections())
    protocol.connection_made(transport)
    if sent:
        protocol.data_received(sent)
    async with asyncio.timeout(10):
        while not transport.closed:  # noqa: ASYNC110  # a transport has no event
            await asyncio.sleep(0)
    assert clock.waits == waits


async def test_a_request_is_refused_before_its_body_is_there() -> None:
    async def handler(_: Request) -> Response:
        raise AssertionError("the request was handled")

    def admit(request: Request) -> Response | None:
        return Response(401, b"who are you") if request.path == "/secret" else None

    transport = Transport()
    protocol = HttpProtocol(handler, Connections(), admit)
    protocol.connection_made(transport)
    protocol.data_received(
        b"POST /secret HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n"
    )
    protocol.data_received(b"abc")
    assert transport.written.startswith(b"HTTP/1.1 401 ")
    assert transport.written.endswith(b"who are you")
    assert transport.closed


async def test_pipelined_request_is_told_to_send_its_body() -> None:
    may = asyncio.Event()

    async def handler(request: Request) -> Response:
        await may.wait()
        return Response(200, request.body)

    transport = Transport()
    protocol = HttpProtocol(handler, Connections())
    protocol.connection_made(transport)
    waits = b"POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n"
    protocol.data_received(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n" + waits)
    assert not transport.written
    may.set()
    await eventually(lambda: transport.written.endswith(b"100 Continue\r\n\r\n"), WITHIN)
    assert transport.written.startswith(b"HTTP/1.1 200 ")
    protocol.data_received(b"abc")
    await eventually(lambda: transport.written.endswith(b"abc"), WITHIN)


class Line:
    """A connection of which is noted whether it was dropped."""

    def __init__(self) -> None:
        self.dropped = False
        self.closed = asyncio.get_running_loop().create_future()

    def close(self) -> None:
        self.dropped = True

    def drop(self) -> None:
        self.dropped = True


async def test_of_too_many_strangers_the_oldest_goes() -> None:
    connections = Connections(strangers=2)
    known, *strangers = [Line() for _ in range(4)]
    assert connections.add(known, "a", known=False)
    connections.know(known)
    for line in strangers:
        assert connections.add(line, "a", known=False)
    assert [line.dropped for line in (known, *strangers)] == [False, True, False, False]
    assert len(connections) == 3


async def test_connections_are_limited_in_all_and_by_peer() -> None:
    connections = Connections(most=3, per_peer=2)
    lines = [Line() for _ in range(5)]
    peers = ["a", "a", "a", "b", "c"]
    added = [connections.add(line, p, known=True) for line, p in zip(lines, peers, strict=True)]
    assert added == [True, True, False, True, False]
    connections.remove(lines[0])
    assert connections.add(lines[2], "a", known=True)


async def test_a_stream_waits_for_a_slow_client_until_it_leaves() -> None:
    progress: list[int] = []

    async def produce(write: Write) -> None:
        for number in range(3):
            await write(b"x")
            progress.append(number)

    async def handler(_: Request) -> Stream:
        return Stream(produce)

    async def settle() -> None:
        for _ in range(10):
            await asyncio.sleep(0)

    transport, connections = Transport(), Connections()
    protocol = HttpProtocol(handler, connections)
    protocol.connection_made(transport)
    protocol.pause_writing()
    protocol.data_received(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
    await settle()
    assert progress == []
    protocol.resume_writing()
    protocol.pause_writing()
    await settle()
    assert progress == [0]
    protocol.connection_lost(None)
    await settle()
    assert progress == [0]
    assert len(connections) == 0


async def test_a_client_that_stops_reading_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lockstep.http.protocol.STALL_SECONDS", 0.01)
    ended = asyncio.Event()

    async def produce(write: Write) -> None:
        try:
            await write(b"x")
        finally:
            ended.set()

    async def handler(_: Request) -> Stream:
        return Stream(produce)

    transport = Transport()
    protocol = HttpProtocol(handler, Connections())
    protocol.connection_made(transport)
    protocol.pause_writing()
    protocol.data_received(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
    await asyncio.wait_for(ended.wait(), 5)
    assert transport.closed
