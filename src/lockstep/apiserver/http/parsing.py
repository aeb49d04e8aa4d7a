"""Reading HTTP/1.1 requests from bytes (RFC 9112)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

MAX_HEAD = 64 << 10
MAX_BODY = 3 << 20
_METHOD = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,20}")


class BadRequest(Exception):
    """What was received is no acceptable HTTP; the connection cannot be used any further."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


@dataclass(slots=True)
class Head:
    """The request line and the headers."""

    method: str
    target: str
    headers: dict[str, str]
    keep_alive: bool
    length: int
    """Length of the body; -1 when it comes in chunks."""


def parse_head(data: bytes) -> Head:
    """Parse a request's head, without the empty line that ends it.

    Raises:
        BadRequest: when it is malformed or ambiguous.
    """
    first, _, rest = data.decode("latin-1").partition("\r\n")
    parts = first.split(" ")
    if len(parts) != 3 or not parts[2].startswith("HTTP/1.") or not parts[1]:
        raise BadRequest(400, "malformed request line")
    method, target, version = parts
    if not _METHOD.fullmatch(method):
        raise BadRequest(400, "malformed request line")
    headers = _headers(rest)
    connection = headers.get("connection", "").lower()
    keep_alive = connection != "close" if version == "HTTP/1.1" else connection == "keep-alive"
    if not target.startswith("/"):
        _, _, rest = target.partition("://")
        target = "/" + rest.partition("/")[2]
    return Head(method, target, headers, keep_alive, _length(headers))


@lru_cache(maxsize=64)
def _headers(text: str) -> dict[str, str]:
    # A connection sends the same ones again and again; nobody writes into them.
    headers: dict[str, str] = {}
    for line in text.split("\r\n") if text else ():
        name, colon, value = line.partition(":")
        if not colon or not name or name[-1] in " \t" or name[0] in " \t":
            raise BadRequest(400, "malformed header")
        name = name.lower()
        value = value.strip(" \t")
        if name in headers:
            # Two lengths are how requests are smuggled past a proxy.
            if name in ("content-length", "transfer-encoding", "host"):
                raise BadRequest(400, f"header {name} is given twice")
            value = f"{headers[name]}, {value}"
        headers[name] = value
    return headers


def _length(headers: dict[str, str]) -> int:
    encoding = headers.get("transfer-encoding")
    length = headers.get("content-length")
    if encoding is not None:
        if length is not None or encoding.lower() != "chunked":
            raise BadRequest(400, "ambiguous or unknown transfer encoding")
        return -1
    if length is None:
        return 0
    if not length.isascii() or not length.isdigit():
        raise BadRequest(400, "malformed content length")
    if int(length) > MAX_BODY:
        raise BadRequest(413, f"the body exceeds {MAX_BODY} bytes")
    return int(length)


class Chunks:
    """Puts a chunked body together."""

    def __init__(self) -> None:
        self._body = bytearray()
        self._left = -1
        self._trailers = False

    def feed(self, buffer: bytearray) -> bytes | None:
        """Take what is complete from the front of *buffer*; return the body when it is whole.

        Raises:
            BadRequest: when the framing is broken or the body too large.
        """
        while True:
            if self._left > 0:
                if len(buffer) < self._left + 2:
                    return None
                self._body += buffer[: self._left]
                del buffer[: self._left + 2]
                self._left = -1
                continue
            end = buffer.find(b"\r\n")
            if end < 0:
                if len(buffer) > MAX_HEAD:
                    raise BadRequest(400, "malformed chunk")
                return None
            line = bytes(buffer[:end])
            del buffer[: end + 2]
            if self._trailers:
                if not line:
                    return bytes(self._body)
                continue
            self._start(line)

    def _start(self, line: bytes) -> None:
        try:
            size = int(line.split(b";", 1)[0].strip(), 16)
        except ValueError:
            raise BadRequest(400, "malformed chunk size") from None
        if size < 0 or len(self._body) + size > MAX_BODY:
            raise BadRequest(413, f"the body exceeds {MAX_BODY} bytes")
        self._left = size
        self._trailers = size == 0
