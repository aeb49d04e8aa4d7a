"""The HTTP protocol: however the bytes arrive, the same requests come out."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstep.apiserver.http import HttpProtocol, Request, Response, Stream
from lockstep.apiserver.http.message import Write
from lockstep.apiserver.http.parsing import BadRequest, Chunks, parse_head


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

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


REQUESTS = (
    b"GET /one?a=1&b=%20x HTTP/1.1\r\nHost: h\r\n\r\n"
    b"POST /two HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello"
    b"PUT /three HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n"
    b"DELETE /fo%20ur HTTP/1.1\r\nConnection: close\r\n\r\n"
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
    protocol = HttpProtocol(handler, set())
    protocol.connection_made(transport)
    for piece in pieces:
        protocol.data_received(piece)
        await asyncio.sleep(0)
    for _ in range(20):
        await asyncio.sleep(0)
    protocol.connection_lost(None)
    return seen, transport


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, len(REQUESTS)), max_size=12))
def test_requests_may_be_cut_anywhere(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(REQUESTS)]
    pieces = [REQUESTS[a:b] for a, b in pairwise(edges)]
    seen, transport = asyncio.run(feed(pieces))
    assert seen == EXPECTED
    assert transport.written.count(b"HTTP/1.1 200 OK\r\n") == 4
    assert transport.written.endswith(b"/fo ur")
    assert transport.closed


BAD_HEADS = [
    (b"GET /", 400),
    (b"GET / HTTP/2.0", 400),
    (b"GET  / HTTP/1.1", 400),
    (b"BR(W / HTTP/1.1", 400),
    (b"GET / HTTP/1.1\r\nno colon", 400),
    (b"GET / HTTP/1.1\r\nName : value", 400),
    (b"GET / HTTP/1.1\r\n folded: value", 400),
    (b"GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1", 400),
    (b"GET / HTTP/1.1\r\nContent-Length: +1", 400),
    (b"GET / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked", 400),
    (b"GET / HTTP/1.1\r\nTransfer-Encoding: gzip", 400),
    (b"POST / HTTP/1.1\r\nContent-Length: 4000000", 413),
]


@pytest.mark.parametrize(("head", "status"), BAD_HEADS)
def test_heads_that_are_refused(head: bytes, status: int) -> None:
    with pytest.raises(BadRequest) as refused:
        parse_head(head)
    assert refused.value.status == status


@pytest.mark.parametrize("chunk", [b"x\r\n", b"-1\r\n", b"ffffffff\r\n", b"1" * 70_000])
def test_chunks_that_are_refused(chunk: bytes) -> None:
    with pytest.raises(BadRequest):
        Chunks().feed(bytearray(chunk))


async def test_a_stream_waits_for_a_slow_client_and_stops_for_one_that_is_gone() -> None:
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

    transport, connections = Transport(), set[HttpProtocol]()
    protocol = HttpProtocol(handler, connections)
    protocol.connection_made(transport)
    protocol.pause_writing()
    protocol.data_received(b"GET / HTTP/1.1\r\n\r\n")
    await settle()
    assert progress == []
    protocol.resume_writing()
    protocol.pause_writing()
    await settle()
    assert progress == [0]
    protocol.connection_lost(None)
    await settle()
    assert progress == [0]
    assert connections == set()


async def test_a_client_that_stops_reading_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lockstep.apiserver.http.protocol.STALL_SECONDS", 0.01)
    ended = asyncio.Event()

    async def produce(write: Write) -> None:
        try:
            await write(b"x")
        finally:
            ended.set()

    async def handler(_: Request) -> Stream:
        return Stream(produce)

    transport = Transport()
    protocol = HttpProtocol(handler, set())
    protocol.connection_made(transport)
    protocol.pause_writing()
    protocol.data_received(b"GET / HTTP/1.1\r\n\r\n")
    await asyncio.wait_for(ended.wait(), 5)
    assert transport.closed
