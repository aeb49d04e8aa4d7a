"""HTTP/1.1 as a client speaks it (RFC 9112): writing requests, reading answers. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import httptools

HEAD_LIMIT: Final = 64 << 10
"""Longest head of an answer, in bytes."""
_END: Final = b"\r\n\r\n"
_LENGTHS: Final = {"content-length", "transfer-encoding"}
_CONTROL: Final = re.compile("[\x00-\x08\x0a-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class Request:
    """A request; *target* is the path with its encoded query."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes | None = None


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
        ValueError: when a control character in it could make two requests of one.
    """
    lines = [f"{request.method} {prefix}{request.target} HTTP/1.1", f"Host: {host}"]
    lines += [f"{name}: {value}" for name, value in request.headers.items()]
    body = request.body
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    elif request.method not in ("GET", "HEAD"):
        lines.append("Content-Length: 0")
    head = "\r\n".join(lines)
    if len(_CONTROL.findall(head)) != 2 * (len(lines) - 1):
        raise ValueError(f"{request.method}: a control character within a request's head")
    data = head.encode("latin-1") + _END
    return data if body is None else data + body


class AnswerReader:
    """Reads one answer from bytes that come in pieces of any size."""

    __slots__ = (
        *(
            "_body",
            "_count",
            "_fault",
            "_has_length",
            "_head_only",
            "_length",
            "_parser",
            "_values",
        ),
        *("began", "complete", "headers", "keep_alive", "status"),
    )

    def __init__(self, method: str) -> None:
        self.status = 0
        """The status; 0 until the whole head is there."""
        self.headers = Headers({})
        self.began = False
        """Whether anything of the answer came."""
        self.complete = False
        self.keep_alive = False
        """Whether the connection can carry another request once this answer is complete."""
        self._head_only = method == "HEAD"
        self._has_length = False
        self._values: dict[str, str] = {}
        self._body: list[bytes] = []
        self._count = self._length = 0
        self._fault = ""
        self._parser: Any = httptools.HttpResponseParser(self)

    def feed(self, data: bytes) -> bytes:
        """Take what came and return what of the body is in it, which may be nothing.

        Raises:
            ProtocolError: when it is no answer, or more than one.
        """
        if self.complete:
            if data:
                raise ProtocolError("bytes after the end of an answer")
            return b""
        if not self.status:
            self._count += len(data)
        self.began = True
        self._parse(data)
        if not self.status and self._count > HEAD_LIMIT:
            raise ProtocolError("the head of an answer is too long")
        if self.complete:
            # It refers back to its reader, and both would stay until the garbage collector looks
            # for cycles.
            self._parser = None
        pieces, self._body = self._body, []
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _parse(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._fault = (
                self._fault or "the server changes to a protocol that the client did not ask for"
            )
        except httptools.HttpParserError as error:
            self._fault = self._fault or f"this is no answer in HTTP/1.1: {error}"
        if self._fault:
            self._parser = None
            raise ProtocolError(self._fault)

    def end(self) -> bool:
        """Take the end of the connection; return whether the answer is complete with it."""
        if self.status and not self._has_length:
            self.complete = True
        self._parser = None
        return self.complete

    # What httptools calls.

    def on_message_begin(self) -> None:
        """Begin an answer; there may be one."""
        if self.complete:
            self._fault = "bytes after the end of an answer"
        self._values = {}

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; a trailer counts for the size alone."""
        self._length += len(name) + len(value)
        if self._length > HEAD_LIMIT:
            self._fault = self._fault or "the head of an answer is too long"
        if self.status:
            return
        small, text = name.decode("latin-1").lower(), value.decode("latin-1").rstrip(" \t")
        known = self._values.get(small)
        self._values[small] = text if known is None else f"{known}, {text}"

    def on_headers_complete(self) -> None:
        """Look at the whole head, unless it says that another one follows."""
        parser, values = self._parser, self._values
        status, version = parser.get_status_code(), parser.get_http_version()
        if version not in ("1.1", "1.0"):
            self._fault = f"this is no answer in HTTP/1.1 but HTTP {version}"
        elif status == 101:
            self._fault = "the server changes to a protocol that the client did not ask for"
        elif not 100 <= status < 600:
            self._fault = f"{status} is no status"
        elif values.get("transfer-encoding", "chunked").lower() != "chunked":
            self._fault = "an unknown transfer encoding"
        elif status >= 200:
            self._begin_body(status, values)

    def _begin_body(self, status: int, values: dict[str, str]) -> None:
        self.status, self.headers = status, Headers(values)
        has_none = self._head_only or status in (204, 304)
        self._has_length = has_none or bool(values.keys() & _LENGTHS)
        self.keep_alive = self._has_length and self._parser.should_keep_alive()
        self.complete = has_none

    def on_body(self, body: bytes) -> None:
        """Take a part of the body."""
        if self.complete:
            self._fault = "bytes after the end of an answer"
        self._body.append(body)

    def on_message_complete(self) -> None:
        """Note the end, unless it is that of a head that another one follows."""
        self.complete = bool(self.status)
