"""SPDY frames, and the ports that are forwarded in them."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import struct
import zlib
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.nodes.process.spdy import (
    _DICTIONARY,
    BadFrame,
    Data,
    Frame,
    Opened,
    Ping,
    Reader,
    Reset,
    Writer,
)
from lockstep.nodes.process.spdy_ports import SpdyPorts


class Client:
    """The other side: what a client sends."""

    def __init__(self) -> None:
        self._deflate = zlib.compressobj(zdict=_DICTIONARY)

    def open(self, stream: int, **headers: str) -> bytes:
        text = struct.pack(">I", len(headers))
        for name, value in headers.items():
            for word in (name, value):
                text += struct.pack(">I", len(word)) + word.encode()
        block = self._deflate.compress(text) + self._deflate.flush(zlib.Z_SYNC_FLUSH)
        body = struct.pack(">IIH", stream, 0, 0) + block
        return struct.pack(">HHI", 1 << 15 | 3, 1, len(body)) + body


def said() -> tuple[bytes, list[Frame]]:
    """Return bytes of every kind of frame, and the frames that they are."""
    client, writer = Client(), Writer()
    settings = struct.pack(">HHI", 1 << 15 | 3, 4, 4) + struct.pack(">I", 0)
    parts = [
        client.open(1, streamtype="error", port="80"),
        client.open(3, streamtype="data", port="80"),
        settings,
        writer.data(3, b"hello"),
        writer.ping(7),
        writer.data(3, b"", ended=True),
        writer.reset(1),
    ]
    return b"".join(parts), [
        Opened(1, {"streamtype": "error", "port": "80"}),
        Opened(3, {"streamtype": "data", "port": "80"}),
        Data(3, b"hello", ended=False),
        Ping(7),
        Data(3, b"", ended=True),
        Reset(1),
    ]


@given(st.lists(st.integers(0, 300), max_size=8))
def test_frames_are_read_however_they_are_cut(cuts: list[int]) -> None:
    data, expected = said()
    reader = Reader()
    edges = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    pieces = [data[a:b] for a, b in itertools.pairwise(edges)]
    assert [frame for piece in pieces for frame in reader.feed(piece)] == expected


@given(st.binary(max_size=60))
def test_any_bytes_are_frames_or_refused(data: bytes) -> None:
    with contextlib.suppress(BadFrame):
        list(Reader().feed(data))
        list(Reader().feed(said()[0] + data))


@pytest.mark.parametrize(
    "data",
    [
        struct.pack(">II", 1, 2 << 20),
        struct.pack(">HHI", 1 << 15 | 3, 1, 1 << 20),
        struct.pack(">HHI", 1 << 15 | 2, 6, 4) + b"1234",
        struct.pack(">HHI", 1 << 15 | 3, 1, 12) + b"x" * 12,
        Client().open(1, bomb="x" * (65 << 10)),
    ],
    ids=["large data", "large control", "another version", "no headers", "headers that swell"],
)
def test_what_is_too_large_or_broken_is_refused(data: bytes) -> None:
    with pytest.raises(BadFrame):
        list(Reader().feed(data))


async def test_an_unreachable_port_is_reported_on_the_error_stream() -> None:
    client, sent = Client(), bytearray()
    over = asyncio.Event()

    async def send(data: bytes) -> None:
        sent.extend(data)
        if b"an error occurred forwarding" in sent:
            over.set()

    async def received() -> AsyncIterator[bytes]:
        yield client.open(1, streamtype="error", port="1", requestid="0")
        yield client.open(3, streamtype="data", port="1", requestid="0")
        await over.wait()

    await SpdyPorts(send, "127.0.0.1").serve(received())
    errors = [f for f in Reader().feed(bytes(sent)) if isinstance(f, Data) and f.data]
    assert [frame.stream for frame in errors] == [1]


@pytest.mark.parametrize(
    "headers",
    [
        {"streamtype": "data", "port": "x"},
        {"streamtype": "data", "port": "70000"},
        {"streamtype": "other", "port": "80"},
        {"port": "80"},
        {"streamtype": "data"},
    ],
)
async def test_streams_without_a_port_are_refused(headers: dict[str, str]) -> None:
    sent = bytearray()

    async def send(data: bytes) -> None:
        sent.extend(data)

    async def received() -> AsyncIterator[bytes]:
        yield Client().open(1, **headers)

    await SpdyPorts(send, "127.0.0.1").serve(received())
    assert list(Reader().feed(bytes(sent))) == [Reset(1)]
