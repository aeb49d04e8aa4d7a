"""Requests and responses, apart from how they travel."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qsl, unquote

Write = Callable[[bytes], Awaitable[None]]
"""Sends a chunk; returns when the client keeps up, raises ConnectionError when it is gone."""


@lru_cache(maxsize=256)
def read_query(text: str) -> dict[str, str]:
    """Return the parameters of a query, to be read only; of one given twice, the first."""
    # Clients ask the same again and again.
    query: dict[str, str] = {}
    for name, value in parse_qsl(text, keep_blank_values=True):
        query.setdefault(name, value)
    return query


@dataclass(slots=True)
class Peer:
    """The other end of a connection."""

    address: str = ""
    certificate: dict[str, Any] | None = None
    """The verified client certificate, as ``ssl.SSLSocket.getpeercert`` gives it."""
    known: bool = False
    """Whether a credential that is accepted came over the connection."""
    ends: tuple[Any, Any] = (None, None)
    """The socket addresses of the other end and of this one."""


class Request:
    """One request, its body read."""

    __slots__ = (
        "_query",
        "body",
        "headers",
        "method",
        "parsed",
        "path",
        "peer",
        "raw_query",
        "resource",
        "verb",
        "wanted",
    )

    def __init__(
        self, method: str, target: str, headers: dict[str, str], body: bytes, peer: Peer
    ) -> None:
        path, _, self.raw_query = target.partition("?")
        self.method = method
        self.path = unquote(path) if "%" in path else path
        self.headers = headers
        """Header values by lower-case name."""
        self.body = body
        self.parsed: Any = None
        """What reading the body ahead gave, where that was done."""
        self.peer = peer
        self.verb = method.lower()
        """What it does and to which resource, for the metrics, once that is known."""
        self.resource = ""
        self.wanted = ""
        """The media type in which the answer is wanted, once that is known."""
        self._query: dict[str, str] | None = None

    @property
    def query(self) -> dict[str, str]:
        """Return the query parameters, to be read only; of one given twice, the first."""
        if self._query is None:
            self._query = read_query(self.raw_query) if self.raw_query else {}
        return self._query


@dataclass(slots=True)
class Response:
    """A response that is sent whole."""

    status: int = 200
    body: bytes = b""
    content_type: str = "application/json"
    headers: list[tuple[str, str]] = field(default_factory=list)


@dataclass(slots=True)
class Stream:
    """A response that is produced while it is sent; its length is not known beforehand."""

    produce: Callable[[Write], Awaitable[None]]
    status: int = 200
    content_type: str = "application/json"
    headers: list[tuple[str, str]] = field(default_factory=list)
