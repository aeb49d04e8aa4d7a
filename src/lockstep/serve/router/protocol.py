"""The clients' side of the router: requests from bytes, one after the other."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final, cast

import httptools

from lockstep.serve.router.authentication import TokenAuthenticator, within
from lockstep.serve.router.buffered_request import BufferedRequest
from lockstep.serve.router.calls import Asked
from lockstep.serve.router.exchange import (
    HOP_BY_HOP,
    WHOLE,
    Exchange,
    Shape,
    answer,
    openai_error,
    plain_error,
)
from lockstep.serve.router.lane import Lane
from lockstep.serve.router.sorting import OPENAI, Sorting

_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
MOST_HEAD: Final = 64 << 10
MOST_BODY: Final = 1 << 30
PIPELINED: Final = 32

_UNAUTHENTICATED: Final = "a token is needed: Authorization: Bearer TOKEN"
_ASK_FOR_TOKEN: Final = b"WWW-Authenticate: Bearer\r\n"

Request = Exchange | BufferedRequest
Find = Callable[[bytes, bytes], tuple[Lane, bytes] | None]
"""From host and target the lane, and the target at the replica; none where there is no service."""


class BadRequest(Exception):
    """What cannot be passed on."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class ClientSide(asyncio.Protocol):
    """One client's connection."""

    def __init__(
        self,
        find: Find,
        unknown: Callable[[bytes, bytes], bytes],
        everyone: set[ClientSide],
        sorting: Sorting,
        authenticator: TokenAuthenticator | None = None,
    ) -> None:
        self._find, self._unknown, self._everyone = find, unknown, everyone
        self._sorting, self._authenticator = sorting, authenticator
        self._parser = httptools.HttpRequestParser(self)
        self._queue: deque[Request | bytes] = deque()
        """Requests that came before the one before them was answered; or answers of our own."""
        self._present: Request | None = None
        self._reading: Request | None = None
        self._url = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._seen = self._body = 0
        self._broken = False
        self._paused: set[str] = set()
        self.old = False
        self.transport: asyncio.Transport

    # --- asyncio ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self.transport = cast(asyncio.Transport, transport)
        self._everyone.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Give up what was under way for this client."""
        self._broken = True
        self._everyone.discard(self)
        for one in (self._present, *self._queue):
            if one is not None and not isinstance(one, bytes):
                one.abandon()

    def data_received(self, data: bytes) -> None:
        """Parse what the client sent."""
        if self._broken:
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._refuse(BadRequest(501, "connections are not upgraded"))
        except httptools.HttpParserError as error:
            cause = error.__context__
            refused = cause if isinstance(cause, BadRequest) else None
            self._refuse(refused or BadRequest(400, "malformed request"))
        if len(self._queue) > PIPELINED:
            self._pause("pipelined", True)

    def pause_writing(self) -> None:
        """Have the replica wait for a client that reads slowly."""
        if self._present is not None:
            self._present.hold_back(True)

    def resume_writing(self) -> None:
        """Let the replica go on."""
        if self._present is not None:
            self._present.hold_back(False)

    # --- httptools ---

    def on_message_begin(self) -> None:
        """Begin a request."""
        self._url = b""
        self._headers = []
        self._seen = self._body = 0
        self._reading = None

    def on_url(self, url: bytes) -> None:
        """Take a part of the target."""
        self._url += url
        self._count(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take one header."""
        self._headers.append((name, value))
        self._count(len(name) + len(value) + 4)

    def _count(self, size: int) -> None:
        self._seen += size
        if self._seen > MOST_HEAD:
            raise BadRequest(431, f"the head is larger than {MOST_HEAD} bytes")

    def on_headers_complete(self) -> None:
        """Find where the request goes; let it wait for its turn."""
        self.old = self._parser.get_http_version() == "1.0"
        host, length, chunked, expects = self._framing()
        if length is not None and length > MOST_BODY:
            raise BadRequest(413, f"the body is larger than {MOST_BODY} bytes")
        length = None if chunked else length or 0
        request = self._request(host, length)
        self._line_up(request)
        if isinstance(request, bytes):
            if expects:
                # The client sends no body before it hears, and the refusal comes after the body.
                self.transport.write(_CONTINUE)
            return
        self._reading = request
        if expects:
            self.transport.write(_CONTINUE)
        if chunked or (length or 0) > WHOLE:
            self._advance_streaming()

    def _request(self, host: bytes, length: int | None) -> Request | bytes:
        """Return what carries the request that begins, or the answer to it."""
        kept = [
            pair
            for pair in self._headers
            if pair[0].lower() not in HOP_BY_HOP and pair[0].lower() != b"content-length"
        ]
        method = self._parser.get_method()
        namespaces = frozenset[str]()
        if self._authenticator is not None:
            opened = self._authenticator.allowed_namespaces(self._headers)
            if opened is None:
                return answer(401, _UNAUTHENTICATED, headers=_ASK_FOR_TOKEN, shape=self._shape())
            # The token is the router's: replicas do not see it.
            namespaces, kept = opened, [one for one in kept if one[0].lower() != b"authorization"]
        tenant = ",".join(sorted(namespaces))
        found = self._find(host, self._url)
        if found is not None:
            lane, target = found
            if not within(lane.key, namespaces):
                words = f"the token is not for services of {lane.key.split('/')[0]}"
                shape = openai_error if lane.spec.models else plain_error
                return answer(403, words, shape=shape)
            asked = Asked(method, target, kept, tenant=tenant)
            return self._sorting.sort(self, lane, asked, length)
        if self._url.startswith(OPENAI):
            target = self._url[len(OPENAI) - 1 :]
            sorting = self._sorting.within(namespaces)
            asked = Asked(method, target, kept, tenant=tenant)
            return sorting.by_model(self, asked, length)
        return answer(404, "no such service") if namespaces else self._unknown(host, self._url)

    def _shape(self) -> Shape:
        """Return how the client reads errors, by the path that it asks for."""
        return openai_error if self._url.startswith(OPENAI) else plain_error

    def _framing(self) -> tuple[bytes, int | None, bool, bool]:
        """Return host, length, whether the body comes in chunks, and whether to say `continue`."""
        host = b""
        length: int | None = None
        chunked = expects = False
        hosts = 0
        for name, value in self._headers:
            lower = name.lower()
            if lower == b"host":
                host, hosts = value, hosts + 1
            elif lower == b"content-length":
                if length is not None or not value.isdigit():
                    raise BadRequest(400, "the content length is malformed or given twice")
                length = int(value)
            elif lower == b"transfer-encoding":
                if chunked or value.strip().lower() != b"chunked":
                    raise BadRequest(400, "this transfer encoding is not understood")
                chunked = True
            elif lower == b"expect":
                expects = value.lower() == b"100-continue"
        if (chunked and (length is not None or self.old)) or hosts > 1:
            raise BadRequest(400, "the length of the body, or the host, is ambiguous")
        if hosts == 0 and not self.old:
            raise BadRequest(400, "a request needs a host")
        return host, length, chunked, expects

    def on_body(self, body: bytes) -> None:
        """Pass on a piece of the body."""
        self._body += len(body)
        if self._body > MOST_BODY:
            raise BadRequest(413, f"the body is larger than {MOST_BODY} bytes")
        if self._reading is not None:
            self._reading.feed(body)
            if self._reading.held_bytes >= WHOLE:
                self._advance_streaming()

    def on_message_complete(self) -> None:
        """Send the request off if its turn has come."""
        if self._reading is not None:
            self._reading.end()
            self._reading = None
        self._advance()

    # --- one after the other ---

    def _line_up(self, one: Request | bytes) -> None:
        self._queue.append(one)

    def _advance(self) -> None:
        """Begin the next request that is whole."""
        while self._present is None and self._queue and not self._broken:
            first = self._queue[0]
            if isinstance(first, bytes):
                self._queue.popleft()
                self.transport.write(first)
                self._close_unless_kept()
            elif first.complete:
                self._start()
            else:
                return

    def _advance_streaming(self) -> None:
        """Begin the next request though it is not whole yet."""
        first = self._queue[0] if self._present is None and self._queue else None
        # Others are read whole.
        if isinstance(first, Exchange) and not (first.waits and first.held_bytes < WHOLE):
            self._start()

    def _start(self) -> None:
        first = cast(Request, self._queue.popleft())
        self._present = first
        if len(self._queue) <= PIPELINED:
            self._pause("pipelined", False)
        first.start()

    def write(self, data: bytes) -> None:
        """Send bytes to the client."""
        if not self._broken:
            self.transport.write(data)

    def pause(self, paused: bool) -> None:
        """Stop, or go on, reading from the client."""
        self._pause("replica", paused)

    def _pause(self, why: str, paused: bool) -> None:
        before = bool(self._paused)
        (self._paused.add if paused else self._paused.discard)(why)
        if bool(self._paused) != before and not self.transport.is_closing():
            (self.transport.pause_reading if paused else self.transport.resume_reading)()

    def finished(self, *, keep: bool) -> None:
        """Go on with the next request, or close."""
        self._present = None
        self._pause("replica", False)
        if not keep:
            self._broken = True
            self.transport.close()
        else:
            self._close_unless_kept()
            self._advance()

    def _close_unless_kept(self) -> None:
        if not self._parser.should_keep_alive() and not self._queue:
            self._broken = True
            self.transport.close()

    def _refuse(self, error: BadRequest) -> None:
        """Answer what cannot be read, after what is under way, and close."""
        for one in (self._present, *self._queue):
            if one is not None and not isinstance(one, bytes):
                one.abandon()
        refused = answer(error.status, str(error), close=True, shape=self._shape())
        self.transport.write(refused)
        self._broken = True
        self.transport.close()
