"""A connection against a transport that only takes notes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from lockstep.kube.errors import Unreachable
from lockstep.kube.http_channel import STREAM_BUFFER, Channel, Endpoint
from lockstep.kube.transport import Request

GET = Request("GET", "/x", {})
STREAM = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
HALF = STREAM_BUFFER // 2 + 1
CHUNK = b"%x\r\n" % HALF + bytes(HALF) + b"\r\n"


class Notes(asyncio.Transport):
    """Notes what is asked of it."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.reading = True
        self.closed = False

    def write(self, data: Any) -> None:
        self.written += data

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def is_closing(self) -> bool:
        return self.closed

    def abort(self) -> None:
        self.closed = True


def connected() -> tuple[Channel, Notes]:
    channel = Channel(Endpoint.of("http://h:1", None, None), set())
    notes = Notes()
    channel.connection_made(notes)
    return channel, notes


async def begun() -> tuple[Channel, Notes]:
    channel, notes = connected()
    beginning = asyncio.ensure_future(channel.begin(GET))
    await asyncio.sleep(0)
    channel.data_received(STREAM)
    assert (await beginning).status == 200
    return channel, notes


async def test_only_a_slow_reader_makes_the_server_wait() -> None:
    channel, notes = await begun()
    channel.data_received(CHUNK)
    assert notes.reading
    channel.data_received(CHUNK)
    assert not notes.reading
    assert len(await channel.read()) == 2 * HALF
    assert notes.reading
    channel.data_received(CHUNK)
    assert notes.reading


async def test_a_whole_answer_may_exceed_a_streams_buffer() -> None:
    channel, notes = connected()
    sending = asyncio.ensure_future(channel.exchange(GET))
    await asyncio.sleep(0)
    channel.data_received(STREAM)
    for _ in range(3):
        channel.data_received(CHUNK)
        assert notes.reading
    channel.data_received(b"0\r\n\r\n")
    assert len((await sending).body) == 3 * HALF
    assert channel.reusable


async def test_nothing_is_sent_on_a_connection_that_is_gone() -> None:
    channel, notes = connected()
    channel.connection_lost(None)
    with pytest.raises(Unreachable) as caught:
        await channel.exchange(GET)
    assert not caught.value.acted
    assert not notes.written


async def test_the_first_thing_that_went_wrong_is_what_is_told() -> None:
    channel, notes = connected()
    sending = asyncio.ensure_future(channel.exchange(GET))
    await asyncio.sleep(0)
    channel.data_received(b"no HTTP at all\r\n\r\n")
    channel.connection_lost(ConnectionResetError())
    with pytest.raises(Unreachable) as caught:
        await sending
    assert caught.value.reason == "Protocol"
    assert notes.closed


@pytest.mark.parametrize(
    ("url", "host", "port", "prefix", "authority"),
    [
        ("https://10.0.0.1:6443", "10.0.0.1", 6443, "", "10.0.0.1:6443"),
        ("https://api.example.org", "api.example.org", 443, "", "api.example.org:443"),
        ("http://localhost/k8s/c-1/", "localhost", 80, "/k8s/c-1", "localhost:80"),
        ("https://[::1]:6443", "::1", 6443, "", "[::1]:6443"),
    ],
)
def test_where_a_server_is(url: str, host: str, port: int, prefix: str, authority: str) -> None:
    end = Endpoint.of(url, None, None)
    assert (end.host, end.port, end.prefix, end.authority) == (host, port, prefix, authority)
    assert (end.tls is not None) is url.startswith("https")
    assert end.server_name == (host if end.tls else None)
