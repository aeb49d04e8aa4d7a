"""Requests whose end is ambiguous: the router reads them as nginx does, or refuses them."""

from __future__ import annotations

import asyncio
import contextlib
import random
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.routing import routing
from tests.support.waiting import eventually_sync, stretched

from lockstep.api.serving import Backend

WITHIN = 30.0
CASES, PATIENCE = 90, 0.2
CONFIG = """
worker_processes 1; daemon off; pid {place}/pid; error_log {place}/log;
events {{ worker_connections 256; }}
http {{
  access_log off; client_body_temp_path {place}/b; proxy_temp_path {place}/p;
  fastcgi_temp_path {place}/f; uwsgi_temp_path {place}/u; scgi_temp_path {place}/s;
  server {{ listen 127.0.0.1:{front};
    location /serving/n/svc/ {{ proxy_pass http://127.0.0.1:{back}/; proxy_http_version 1.1;
 }} }}
}}
"""
SECRET = b"GET /serving/n/svc/smuggled HTTP/1.1\r\nHost: h\r\n\r\n"
END = b"GET /serving/n/svc/end HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
"""Behind every case, more than once: however it was read, the connection is closed after it."""
FRAMINGS = (
    b"Content-Length: 5",
    b"Content-Length: +5",
    b"Content-Length: 5, 5",
    b"Content-Length: 0x5",
    b"Content-Length: 5\r\nContent-Length: 50",
    b"Content-Length : 5",
    b"Transfer-Encoding: chunked",
    b"Transfer-Encoding: chunked\r\nContent-Length: 5",
    b"Transfer-Encoding: xchunked",
    b"Transfer-Encoding : chunked",
    b"Transfer-Encoding: chunked, identity",
    b"Transfer-Encoding:\tchunked",
    b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
    b"X: y\r\n Transfer-Encoding: chunked",
    b"X: y\nTransfer-Encoding: chunked",
    b"Content-Length:\r\n 5",
    b"Foo\r\nContent-Length: 5",
    b"Connection: Content-Length\r\nContent-Length: 5",
)
BODIES = (
    b"",
    b"hello",
    b"0\r\n\r\n",
    b"5\r\nhello\r\n0\r\n\r\n",
    b"5 \r\nhello\r\n0\r\n\r\n",
    b"5;x=y\r\nhello\r\n0\r\n\r\n",
    b"05\r\nhello\r\n0\r\n\r\n",
    b"5\nhello\n0\n\n",
    b"-5\r\nhello\r\n0\r\n\r\n",
    b"ffffffffffffffff5\r\nhello\r\n0\r\n\r\n",
)


def requests() -> list[bytes]:
    """Return requests with every framing, a body, and a second request that may hide in it."""
    draw, found = random.Random(11), []  # noqa: S311
    lines = (b"POST /serving/n/svc/first HTTP/1.1", b"POST /serving/n/svc/first HTTP/1.0")
    for number in range(CASES):
        framing = FRAMINGS[number % len(FRAMINGS)]
        body = draw.choice(BODIES) + (SECRET if draw.random() < 0.7 else b"")
        line, host = draw.choice(lines), draw.choice((b"Host: h", b"Host: h\r\nHost: g"))
        host = b"Host: h" if draw.random() < 0.8 else host
        found.append(b"\r\n".join((line, host, framing, b"", body)))
    return found


@pytest.fixture(scope="module")
def back() -> int:
    """A port for the server behind both."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.fixture(scope="module")
def nginx(tmp_path_factory: pytest.TempPathFactory, back: int) -> Iterator[int]:
    """The port of an nginx that passes requests on to *back*."""
    program = shutil.which("nginx") or shutil.which("/usr/sbin/nginx")
    if program is None:
        pytest.skip("needs nginx")
    place: Path = tmp_path_factory.mktemp("nginx")
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        front = int(one.getsockname()[1])
    (place / "nginx.conf").write_text(CONFIG.format(place=place, front=front, back=back))
    process = subprocess.Popen([program, "-c", str(place / "nginx.conf"), "-p", str(place)])

    def answers() -> bool:
        with socket.socket() as one:
            return one.connect_ex(("127.0.0.1", front)) == 0

    eventually_sync(answers, WITHIN, "nginx answers")
    yield front
    process.terminate()
    process.wait()


class Behind:
    """Reads requests as strictly as can be, and notes what it got of each case."""

    def __init__(self) -> None:
        self.got: list[tuple[bytes, bytes]] = []
        self.ambiguous: list[bytes] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                lines = head.lower().split(b"\r\n")
                length = [one for one in lines if one.startswith(b"content-length:")]
                chunked = [one for one in lines if one.startswith(b"transfer-encoding:")]
                if len(length) + len(chunked) > 1:
                    self.ambiguous.append(head)
                body = b""
                if length:
                    body = await reader.readexactly(int(length[0].partition(b":")[2]))
                while chunked:
                    size = int(await reader.readuntil(b"\r\n"), 16)
                    body += (await reader.readexactly(size + 2))[:-2]
                    if size == 0:
                        break
                self.got.append((head.split(b" ")[1], body))
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            writer.close()


async def sent(port: int, data: bytes, server: Behind) -> list[tuple[bytes, bytes]]:
    """Return what reached the server of *data*, once the front is done with it."""
    server.got = []
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(data)
    # A request that waits for more of its body gets it after a while; others are answered by then.
    with contextlib.suppress(TimeoutError, ConnectionError):
        async with asyncio.timeout(stretched(PATIENCE)):
            await reader.read(1)
    writer.write(b"\r\n0\r\n\r\n" + END * 3)
    with contextlib.suppress(ConnectionError):
        async with asyncio.timeout(stretched(WITHIN)):
            await reader.read()
    writer.close()
    return [one for one in server.got if one[0] != b"/end"]


async def test_requests_nginx_accepts_are_read_as_nginx_reads_them(nginx: int, back: int) -> None:
    server = Behind()
    behind = await asyncio.start_server(server.serve, "127.0.0.1", back)
    try:
        async with routing() as router:
            router.route("svc", Backend(revision="svc", port=back))
            router.ready("svc")
            passed = refused = 0
            for data in requests():
                theirs = await sent(nginx, data, server)
                ours = await sent(router.port, data, server)
                # Where nginx refuses, what is passed on has one length alone: Behind looks at that.
                if ours and theirs:
                    assert ours == theirs[: len(ours)], (data, ours, theirs)
                passed += bool(ours and theirs)
                refused += not ours
            assert server.ambiguous == []
            assert passed
            assert refused
    finally:
        behind.close()
