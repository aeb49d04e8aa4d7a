"""Reading HTTP/1.1 requests from bytes (RFC 9112), strictly."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import httptools

if TYPE_CHECKING:
    from lockstep.http.message import Response

MAX_HEAD: Final = 64 << 10
MAX_BODY: Final = 3 << 20
_ONCE: Final = frozenset({"host", "content-length", "transfer-encoding", "authorization"})
"""Headers of which two would let two readers of one request see two requests."""
_names: dict[bytes, str] = {}


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a server takes over one connection."""

    head: int = MAX_HEAD
    """Most bytes of a request line with its headers."""
    body: int = MAX_BODY
    """Most bytes of a body."""
    once: bool = False
    """Whether a connection ends with its first answer."""


ORDINARY: Final = Bounds()


class BadRequest(Exception):
    """A request that is refused before it is whole; the connection ends with the answer."""

    def __init__(self, status: int, message: str, answer: Response | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.answer = answer
        """The whole answer, where it is more than a status and a text."""


@dataclass(slots=True)
class Head:
    """The request line and the headers."""

    method: str
    target: str
    headers: dict[str, str]
    keep_alive: bool
    has_body: bool


class Received(NamedTuple):
    """A whole request."""

    head: Head
    body: bytes


Begin = Callable[[Head], None]


class RequestReader:
    """Reads requests from bytes that come in pieces of any size.

    *begin* is called with each head before its body comes, and may refuse it.
    """

    def __init__(self, begin: Begin | None = None, bounds: Bounds = ORDINARY) -> None:
        self.ready: deque[Received] = deque()
        """Whole requests that were not taken yet."""
        self.rest = bytearray()
        """What came after a request to change to another protocol."""
        self.head: Head | None = None
        """The head of the request whose body is awaited."""
        self.began = False
        """Whether a request is there in part."""
        self._begin = begin
        self._max_head, self._max_body = bounds.head, bounds.body
        self._upgraded = False
        self._refusal: BadRequest | None = None
        self._url = b""
        self._headers: dict[str, str] = {}
        self._length = 0
        self._count = 0
        self._body: list[bytes] = []
        self._size = 0
        self._parser: Any = httptools.HttpRequestParser(self)

    def feed(self, data: bytes) -> None:
        """Take what came; whole requests are then in :attr:`ready`.

        Raises:
            BadRequest: when it is no acceptable HTTP; nothing more can be read.
        """
        if self._upgraded:
            self.rest += data
            return
        if self.began:
            self._count += len(data)
            self._require_bounded()
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._upgraded = True
            self.rest += data[upgrade.args[0] :]
        except httptools.HttpParserError as error:
            raise self._refusal or BadRequest(400, f"malformed request: {error}") from None
        if self._refusal is not None:
            raise self._refusal
        if self.began and not self._count and not self.ready:
            self._count = len(data)
            self._require_bounded()

    def close(self) -> None:
        """Forget the parser, which refers back to its reader."""
        self._parser = None

    def _require_bounded(self) -> None:
        # Headers and chunk sizes that are not whole yet are kept by the parser, unseen.
        if self.head is None and self._count > self._max_head:
            raise BadRequest(431, "the headers are too large")
        if self.head is not None and self._count > self._max_head + 2 * self._max_body:
            raise BadRequest(413, f"the body exceeds {self._max_body} bytes")

    # What httptools calls.

    def on_message_begin(self) -> None:
        """Start anew."""
        self.began, self.head = True, None
        self._url, self._headers = b"", {}
        self._count = self._length = self._size = 0
        self._body = []

    def on_url(self, url: bytes) -> None:
        """Take the target, or a part of it."""
        self._url += url
        self._measure(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; a trailer counts for the size alone."""
        self._measure(len(name) + len(value) + 4)
        if self.head is not None or self._refusal is not None:
            return
        known = _names.get(name) or _name(name)
        text = value.decode("latin-1").rstrip(" \t")
        if known in self._headers:
            if known in _ONCE:
                self._refuse(400, f"header {known} is given twice")
            text = f"{self._headers[known]}, {text}"
        self._headers[known] = text

    def on_headers_complete(self) -> None:
        """Look at the whole head."""
        if self._refusal is not None:
            return
        try:
            self.head = self._checked()
            self._length = 0
            if self._begin is not None:
                self._begin(self.head)
        except BadRequest as refusal:
            self._refusal = refusal

    def on_body(self, body: bytes) -> None:
        """Take a part of the body."""
        self._size += len(body)
        if self._size > self._max_body:
            self._refuse(413, f"the body exceeds {self._max_body} bytes")
        if self._refusal is None:
            self._body.append(body)

    def on_message_complete(self) -> None:
        """Hand over the request."""
        self.began = False
        if self._refusal is None and self.head is not None:
            parts = self._body
            body = parts[0] if len(parts) == 1 else b"".join(parts)
            self.ready.append(Received(self.head, body))
            self.head, self._body = None, []

    def _measure(self, count: int) -> None:
        self._length += count
        if self._length > self._max_head:
            self._refuse(431, "the headers are too large")

    def _refuse(self, status: int, message: str) -> None:
        self._refusal = self._refusal or BadRequest(status, message)

    def _checked(self) -> Head:
        parser, headers = self._parser, self._headers
        version = parser.get_http_version()
        if version not in ("1.1", "1.0"):
            raise BadRequest(400, f"HTTP {version} is not spoken here")
        if "host" not in headers and version == "1.1":
            raise BadRequest(400, "header host is missing")
        encoding, length = headers.get("transfer-encoding"), headers.get("content-length", "0")
        if encoding is not None and encoding.lower() != "chunked":
            raise BadRequest(400, "ambiguous or unknown transfer encoding")
        if not (length.isascii() and length.isdigit()):
            raise BadRequest(400, "malformed content length")
        if int(length) > self._max_body:
            raise BadRequest(413, f"the body exceeds {self._max_body} bytes")
        has_body = encoding is not None or int(length) > 0
        method = parser.get_method().decode()
        return Head(method, self._target(), headers, parser.should_keep_alive(), has_body)

    def _target(self) -> str:
        target = self._url.decode("latin-1")
        if target.startswith("/"):
            return target
        scheme, found, rest = target.partition("://")
        if not found or scheme.lower() not in ("http", "https"):
            raise BadRequest(400, "malformed target")
        return "/" + rest.partition("/")[2]


def _name(name: bytes) -> str:
    """Return a header's name in small letters; those that were met are kept, up to a number."""
    small = name.decode("latin-1").lower()
    if len(_names) < 256 and len(name) < 64:
        _names[name] = small
    return small
