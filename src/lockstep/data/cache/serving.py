"""What a node's cache serves: chunks to other nodes, files and listings to the client library.

A small HTTP/1.1 server on threads, so that whole chunks go from the disk to the network by
``sendfile``. Each dataset has a token of its own; without one, only metrics are given, and those to
this machine alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import os
import socket
import ssl
import struct
import threading
from collections.abc import Callable
from email.utils import formatdate
from typing import Any, Final, Protocol
from urllib.parse import unquote

_HEAD_MOST: Final = 16 << 10
_BODY_MOST: Final = 1 << 20
_CONNECTIONS: Final = 512
"""Connections at once; each has a thread."""
_IDLE: Final = 60
"""Seconds after which a connection that asks for nothing is closed."""
TOGETHER: Final = 64
"""Small chunks that one request gets at most."""
_WORDS: Final = {200: "OK", 206: "Partial Content", 400: "Bad Request", 403: "Forbidden"}
_WORDS_MORE: Final = {404: "Not Found", 409: "Conflict", 410: "Gone", 416: "Range Not Satisfiable"}


class Refusal(Exception):
    """A request that is not served: HTTP status and the reason."""

    def __init__(self, status: int, reason: str, *, code: int = 0) -> None:
        super().__init__(reason)
        self.status, self.code = status, code


class Version(Protocol):
    """A version that is served."""

    async def chunk(self, number: int) -> tuple[int | None, int, int, Any, int]:
        """Return descriptor (or none), start, end, bytes (where none) and checksum of a chunk."""

    async def file(self, path: str, start: int, end: int | None) -> tuple[bytes, int]:
        """Return bytes of a file, and its size."""

    def listing(self, path: str) -> Any:
        """Return what a path is, for JSON: a file, or a directory with what it holds."""

    async def order(self, body: Any) -> Any:
        """Take what a sampler tells of the order in which it reads."""


class Served(Protocol):
    """A dataset that is served."""

    token: str

    def of(self, version: str) -> Version:
        """Return a version; ``current`` is the bound one."""


class Server:
    """Listens on *address*; ``find`` returns a dataset by its uid."""

    def __init__(
        self,
        find: Callable[[str], Served | None],
        metrics: Callable[[], bytes],
        address: str,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._find, self._metrics, self._tls = find, metrics, tls
        host, _, port = address.rpartition(":")
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.socket(family, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind((host.strip("[]"), int(port)))
        self._socket.listen(256)
        self.address = f"{host}:{self._socket.getsockname()[1]}"
        self._loop = asyncio.get_running_loop()
        self._slots = threading.Semaphore(_CONNECTIONS)
        threading.Thread(target=self._accept, name="peers", daemon=True).start()

    def close(self) -> None:
        """Accept no more."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            if not self._slots.acquire(blocking=False):
                connection.close()
                continue
            threading.Thread(target=self._serve, args=[connection], daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection:
                self._converse(connection)
        finally:
            self._slots.release()

    def _converse(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            # Timeouts of the kernel's: those of Python make the socket non-blocking for sendfile.
            for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
                connection.setsockopt(socket.SOL_SOCKET, option, struct.pack("@ll", _IDLE, 0))
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._tls is not None:
                connection = self._tls.wrap_socket(connection, server_side=True)
            buffer = b""
            while True:
                while b"\r\n\r\n" not in buffer:
                    more = connection.recv(65536)
                    if not more or len(buffer) > _HEAD_MOST:
                        return
                    buffer += more
                head, _, buffer = buffer.partition(b"\r\n\r\n")
                buffer = self._request(connection, head, buffer)

    def _request(self, connection: socket.socket, head: bytes, rest: bytes) -> bytes:
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {}
        for line in lines:
            name, _, value = line.partition(":")
            headers[name.strip().lower()] = value.strip()
        length = int(headers.get("content-length") or 0)
        if length > _BODY_MOST:
            raise OSError("a body that is too long")
        while len(rest) < length:
            rest += connection.recv(65536)
        body, rest = rest[:length], rest[length:]
        try:
            method, target, _ = first.split(" ")
            self._answer(connection, method, unquote(target), headers, body)
        except Refusal as refusal:
            _send(connection, refusal.status, str(refusal).encode(), {"x-errno": refusal.code})
        except ValueError as error:
            _send(connection, 400, str(error).encode(), {})
        return rest

    def _answer(
        self, link: socket.socket, method: str, target: str, headers: dict[str, str], body: bytes
    ) -> None:
        if target == "/metrics" and link.getpeername()[0] in ("127.0.0.1", "::1"):
            _send(link, 200, self._metrics(), {"content-type": "text/plain; version=0.0.4"})
            return
        parts = target.split("/", 5)
        if len(parts) < 5 or parts[1] != "v1":
            raise Refusal(404, "no such path")
        _, _, uid, version, what, *names = parts
        served, name = self._find(uid), names[0] if names else ""
        given = headers.get("authorization", "")
        if served is None or not served.token:
            raise Refusal(404, "no such dataset here (yet)")
        if not hmac.compare_digest(given.encode(), f"Bearer {served.token}".encode()):
            raise Refusal(403, "the dataset has another token")
        shown = served.of(version)
        if method == "POST" and what == "order":
            answer = self._wait(shown.order(json.loads(body)))
            _send(link, 200, json.dumps(answer).encode(), {"content-type": "application/json"})
        elif what == "chunk":
            self._send_chunk(link, shown, int(name))
        elif what == "chunks":
            self._send_chunks(link, shown, [int(one) for one in name.split(",")])
        elif what == "list":
            answer = shown.listing(name)
            _send(link, 200, json.dumps(answer).encode(), {"content-type": "application/json"})
        elif what == "file":
            self._send_file(link, shown, name, headers.get("range", ""))
        else:
            raise Refusal(404, "no such path")

    def _wait(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _send_chunk(self, link: socket.socket, shown: Version, number: int) -> None:
        fd, start, end, data, checksum = self._wait(shown.chunk(number))
        headers = {"etag": f'"{checksum:08x}"', "last-modified": formatdate(0, usegmt=True)}
        if fd is None:
            _send(link, 200, data, headers)
            return
        try:
            link.sendall(_head(200, end - start, headers))
            while start < end:
                sent = _send_part(link, fd, start, end)
                if sent == 0:
                    raise OSError("a chunk was cut short")
                start += sent
        finally:
            os.close(fd)

    def _send_chunks(self, link: socket.socket, shown: Version, numbers: list[int]) -> None:
        """Send several small chunks, each behind its length and checksum, 4 bytes each."""
        if len(numbers) > TOGETHER:
            raise Refusal(400, f"at most {TOGETHER} chunks come together")
        parts: list[bytes] = []
        for fd, start, end, data, checksum in self._wait(_all(shown, numbers)):
            held = bytes(data) if fd is None else _read(fd, start, end)
            parts += [struct.pack("!II", len(held), checksum), held]
        _send(link, 200, b"".join(parts), {})

    def _send_file(self, link: socket.socket, version: Version, name: str, span: str) -> None:
        start, end = 0, None
        if span:
            low, _, high = span.removeprefix("bytes=").partition("-")
            start, end = int(low), int(high) + 1 if high else None
        data, size = self._wait(version.file(name, start, end))
        headers = {"content-range": f"bytes {start}-{start + len(data) - 1}/{size}"} if span else {}
        _send(link, 206 if span else 200, data, headers)


def _send_part(link: socket.socket, fd: int, start: int, end: int) -> int:
    """Send some bytes of an open file, and return how many; TLS takes them through memory."""
    if not isinstance(link, ssl.SSLSocket):
        return os.sendfile(link.fileno(), fd, start, end - start)
    data = os.pread(fd, min(end - start, _BODY_MOST), start)
    link.sendall(data)
    return len(data)


def _read(fd: int, start: int, end: int) -> bytes:
    """Return bytes of an open file, and close it."""
    try:
        return os.pread(fd, end - start, start)
    finally:
        os.close(fd)


async def _all(shown: Version, numbers: list[int]) -> list[tuple[int | None, int, int, Any, int]]:
    """Return several chunks.

    Raises:
        Refusal: when one of them cannot be had; nothing of the others is left open.
    """
    given = await asyncio.gather(*map(shown.chunk, numbers), return_exceptions=True)
    found = [one for one in given if not isinstance(one, BaseException)]
    failed = next((one for one in given if isinstance(one, BaseException)), None)
    if failed is not None:
        for fd, *_ in found:
            if fd is not None:
                os.close(fd)
        raise failed
    return found


def _head(status: int, length: int, headers: dict[str, Any]) -> bytes:
    words = _WORDS.get(status) or _WORDS_MORE.get(status, "Error")
    lines = [f"HTTP/1.1 {status} {words}", f"content-length: {length}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def _send(link: socket.socket, status: int, data: Any, headers: dict[str, Any]) -> None:
    head = _head(status, len(data), headers)
    if len(data) < 65536:
        link.sendall(head + bytes(data))
    else:
        link.sendall(head)
        link.sendall(data)
