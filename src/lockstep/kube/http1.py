"""HTTP/1.1 as a client speaks it (RFC 9112): writing requests, reading answers. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from lockstep.kube.transport import Request

HEAD_LIMIT: Final = 64 << 10
"""Longest head of an answer, and longest line between chunks, in bytes."""
_END: Final = b"\r\n\r\n"
_HEX: Final = frozenset(b"0123456789abcdefABCDEF")
_STATUS: Final = re.compile("[1-5][0-9]{2}")


class ProtocolError(Exception):
    """What was received is no HTTP/1.1; the connection cannot be used any further."""


class Headers(Mapping[str, str]):
    """The headers of an answer; names are matched without regard to case."""

    __slots__ = ("_values",)

    def __init__(self, values: dict[str, str]) -> None:
        self._values = values

    def __getitem__(self, name: str) -> str:
        return self._values[name.lower()]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


def write_request(request: Request, host: str, prefix: str = "") -> bytes:
    """Return *request* as it goes on the wire to *host*; *prefix* goes before its target.

    Raises:
        ValueError: when a line break in it would make two requests of one.
    """
    lines = [f"{request.method} {prefix}{request.target} HTTP/1.1", f"Host: {host}"]
    lines += [f"{name}: {value}" for name, value in request.headers.items()]
    body = request.body
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    elif request.method not in ("GET", "HEAD"):
        lines.append("Content-Length: 0")
    head = "\r\n".join(lines)
    if head.count("\n") != len(lines) - 1 or head.count("\r") != len(lines) - 1:
        raise ValueError(f"{request.method}: a line break within a request's head")
    data = head.encode("latin-1") + _END
    return data if body is None else data + body


class AnswerReader:
    """Reads one answer from bytes that come in pieces of any size."""

    __slots__ = ("_body", "_head_only", "_start", "complete", "headers", "keep_alive", "status")

    def __init__(self, method: str) -> None:
        self.status = 0
        """The status; 0 until the whole head is there."""
        self.headers = Headers({})
        self.complete = False
        self.keep_alive = False
        """Whether the connection can carry another request once this answer is complete."""
        self._head_only = method == "HEAD"
        self._start = b""
        self._body: _Counted | _Chunked | None = None

    @property
    def began(self) -> bool:
        """Whether anything of the answer came."""
        return bool(self.status or self._start)

    def feed(self, data: bytes) -> bytes:
        """Take what came and return what of the body is in it, which may be nothing.

        Raises:
            ProtocolError: when it is no answer, or more than one.
        """
        if not self.status:
            data = self._feed_head(data)
            if not self.status:
                return b""
        if self.complete:
            if data:
                raise ProtocolError("bytes after the end of an answer")
            return b""
        if self._body is None:
            return data
        piece = self._body.feed(data)
        self.complete = self._body.complete
        return piece

    def end(self) -> bool:
        """Take the end of the connection; return whether the answer is complete with it."""
        if self.status and self._body is None:
            self.complete = True
        return self.complete

    def _feed_head(self, data: bytes) -> bytes:
        if self._start:
            data = self._start + data
        while True:
            end = data.find(_END)
            if (len(data) if end < 0 else end) > HEAD_LIMIT:
                raise ProtocolError("the head of an answer is too long")
            if end < 0:
                self._start = data
                return b""
            status, minor, values = _parse_head(data[:end])
            data = data[end + len(_END) :]
            if status >= 200:
                break
            if status == 101:
                raise ProtocolError("the server changes to a protocol that nobody asked for")
        self._start = b""
        self.status, self.headers = status, Headers(values)
        self._begin_body(minor, values)
        return data

    def _begin_body(self, minor: int, values: dict[str, str]) -> None:
        connection = values.get("connection", "").lower()
        self.keep_alive = connection == "keep-alive" if minor == 0 else "close" not in connection
        encoding, length = values.get("transfer-encoding"), values.get("content-length")
        if self._head_only or self.status in (204, 304):
            self.complete = True
        elif encoding is not None:
            if encoding.lower() != "chunked" or length is not None:
                raise ProtocolError("an ambiguous or unknown transfer encoding")
            self._body = _Chunked()
        elif length is not None:
            if not (length.isascii() and length.isdigit()):
                raise ProtocolError("a malformed content length")
            self._body = _Counted(int(length))
            self.complete = self._body.complete
        else:
            # The body lasts until the connection ends.
            self.keep_alive = False


class _Counted:
    """A body whose length was said beforehand."""

    __slots__ = ("_left",)

    def __init__(self, length: int) -> None:
        self._left = length

    @property
    def complete(self) -> bool:
        return self._left == 0

    def feed(self, data: bytes) -> bytes:
        if len(data) > self._left:
            raise ProtocolError("bytes after the end of an answer")
        self._left -= len(data)
        return data


class _Chunked:
    """A body in chunks, each with its length before it."""

    __slots__ = ("_after_chunk", "_left", "_rest", "_trailing", "complete")

    def __init__(self) -> None:
        self._rest = b""
        """The beginning of a line that is not all there yet."""
        self._left = 0
        """What is still to come of the present chunk."""
        self._after_chunk = False
        self._trailing = False
        self.complete = False

    def feed(self, data: bytes) -> bytes:
        if self._rest:
            data, self._rest = self._rest + data, b""
        pieces: list[bytes] = []
        at, size = 0, len(data)
        while at < size:
            if self.complete:
                raise ProtocolError("bytes after the end of an answer")
            if self._left:
                piece = data[at : at + self._left]
                pieces.append(piece)
                at += len(piece)
                self._left -= len(piece)
                continue
            end = data.find(b"\r\n", at)
            if (size if end < 0 else end) - at > HEAD_LIMIT:
                raise ProtocolError("a line between chunks is too long")
            if end < 0:
                self._rest = data[at:]
                break
            self._line(data[at:end])
            at = end + 2
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _line(self, line: bytes) -> None:
        if self._trailing:
            self.complete = not line
        elif self._after_chunk:
            if line:
                raise ProtocolError("a chunk is longer than it said")
            self._after_chunk = False
        else:
            size = line.partition(b";")[0].rstrip(b" \t")
            if not 0 < len(size) <= 15 or not _HEX.issuperset(size):
                raise ProtocolError("a malformed chunk length")
            self._left = int(size, 16)
            self._after_chunk = self._left > 0
            self._trailing = not self._left


def _parse_head(head: bytes) -> tuple[int, int, dict[str, str]]:
    """Return an answer's status, the minor version and its headers under small names."""
    first, *lines = head.decode("latin-1").split("\r\n")
    version, _, rest = first.partition(" ")
    code = rest.partition(" ")[0]
    if version not in ("HTTP/1.1", "HTTP/1.0") or not _STATUS.fullmatch(code):
        raise ProtocolError(f"this is no answer in HTTP/1.1: {first[:60]!r}")
    values: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name or name != name.strip():
            raise ProtocolError("a malformed header")
        name, value = name.lower(), value.strip(" \t")
        known = values.get(name)
        if known is None:
            values[name] = value
        elif name != "content-length":
            values[name] = f"{known}, {value}"
        elif known != value:
            raise ProtocolError("two different content lengths")
    return int(code), int(version[-1]), values
