"""The server's connections: a request is answered once it is whole."""

from __future__ import annotations

import asyncio
import re
from collections import deque
from http import HTTPStatus
from typing import Any, Final, cast

import httptools
import msgspec

from lockstep import __version__
from lockstep.serve.server import v1, v2
from lockstep.serve.server.figures import page
from lockstep.serve.server.inputs import Unfit
from lockstep.serve.server.repository import Arrays, Failed, Repository, Unknown

MOST_BODY: Final = 64 << 20
_V1: Final = re.compile(r"/v1/models/([^/:]+)(:predict)?")
_V2: Final = re.compile(r"/v2/models/([^/]+)(?:/versions/[^/]+)?(/ready|/infer)?")
_REPOSITORY: Final = re.compile(r"/v2/repository/models/([^/]+)/(load|unload)")
_LINES: Final = {one.value: f"HTTP/1.1 {one.value} {one.phrase}\r\n".encode() for one in HTTPStatus}
_BINARY: Final = b"inference-header-content-length"


class Refused(Exception):
    """A request that is answered with an error."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class _Change(msgspec.Struct):
    """What a call of the repository says."""

    parameters: dict[str, Any] = {}


class Connection(asyncio.Protocol):
    """One client."""

    def __init__(self, repository: Repository, everyone: set[Connection]) -> None:
        self._repository, self._everyone = repository, everyone
        self._parser = httptools.HttpRequestParser(self)
        self._pending: deque[list[bytes | None]] = deque()
        """Answers in the order of their requests; none while one is not there yet."""
        self._url = b""
        self._json_length: bytes | None = None
        self._body: list[bytes] = []
        self._size = 0
        self._answered = asyncio.Event()
        self._changing: asyncio.Task[None] | None = None
        self.transport: asyncio.Transport

    async def idle(self) -> None:
        """Wait until no request waits for its answer."""
        while self._pending:
            self._answered = asyncio.Event()
            await self._answered.wait()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self.transport = cast(asyncio.Transport, transport)
        self._everyone.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the client."""
        self._everyone.discard(self)

    def data_received(self, data: bytes) -> None:
        """Parse what came."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._end(501, "connections are not upgraded")
        except httptools.HttpParserError as error:
            cause = error.__context__
            if isinstance(cause, Refused):
                self._end(cause.status, str(cause))
            else:
                self._end(400, "malformed request")

    def _end(self, status: int, message: str) -> None:
        self.transport.write(_answer(status, _error(message)))
        self.transport.close()

    # --- httptools ---

    def on_message_begin(self) -> None:
        """Begin a request."""
        self._url, self._json_length, self._body, self._size = b"", None, [], 0

    def on_url(self, url: bytes) -> None:
        """Take a part of the target."""
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take one header."""
        lower = name.lower()
        if lower == _BINARY:
            self._json_length = value
        elif lower == b"expect" and value.lower() == b"100-continue":
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        """Take a piece of the body."""
        self._size += len(body)
        if self._size > MOST_BODY:
            raise Refused(413, f"the body is larger than {MOST_BODY} bytes")
        self._body.append(body)

    def on_message_complete(self) -> None:
        """Answer, now or once the model has."""
        slot: list[bytes | None] = [None]
        self._pending.append(slot)
        method = self._parser.get_method()
        path = self._url.decode("latin-1").partition("?")[0]
        try:
            self._handle(method, path, b"".join(self._body), slot)
        except Unknown as error:
            self._settle(slot, _answer(404, _error(str(error))))
        except Unfit as error:
            self._settle(slot, _answer(400, _error(str(error))))
        except Refused as error:
            self._settle(slot, _answer(error.status, _error(str(error))))

    def _settle(self, slot: list[bytes | None], data: bytes) -> None:
        slot[0] = data
        while self._pending and self._pending[0][0] is not None:
            self.transport.write(self._pending.popleft()[0] or b"")
        if not self._pending:
            self._answered.set()
        if not self._pending and not self._parser.should_keep_alive():
            self.transport.close()

    # --- what is asked ---

    def _handle(self, method: bytes, path: str, body: bytes, slot: list[bytes | None]) -> None:
        if method == b"POST" and (match := _V1.fullmatch(path)) and match[2]:
            model = self._repository.get(match[1])
            future = self._repository.predict(model, v1.inputs(body))
            future.add_done_callback(
                lambda done: self._predicted(slot, done, lambda got: (v1.answer(got), None))
            )
        elif method == b"POST" and (match := _V2.fullmatch(path)) and match[2] == "/infer":
            model = self._repository.get(match[1])
            request, rows = v2.decode(body, self._binary_length())
            future = self._repository.predict(model, rows)
            future.add_done_callback(
                lambda done: self._predicted(slot, done, lambda got: v2.answer(model, request, got))
            )
        elif method == b"POST" and (match := _REPOSITORY.fullmatch(path)):
            uri = _stated_uri(body)
            self._changing = asyncio.ensure_future(self._change(match[1], match[2], uri, slot))
        elif method == b"POST" and path == "/v2/repository/index":
            self._settle(slot, _answer(200, msgspec.json.encode(self._repository.index())))
        elif method == b"GET" and path == "/metrics":
            self._settle(slot, _answer(200, page(self._repository), b"text/plain; version=0.0.4"))
        elif method in (b"GET", b"HEAD"):
            self._settle(slot, _answer(200, msgspec.json.encode(self._get(path))))
        else:
            raise Refused(
                404,
                f"nothing is at {path}; POST to /v1/models/NAME:predict or /v2/models/NAME/infer",
            )

    async def _change(self, name: str, verb: str, uri: str, slot: list[bytes | None]) -> None:
        """Load or unload a model; it is no longer, or newly, served once this is answered."""
        try:
            if verb == "load":
                await self._repository.load(name, uri)
            else:
                self._repository.unload(name)
        except Unknown as error:
            self._settle(slot, _answer(404, _error(str(error))))
        except Failed as error:
            self._settle(slot, _answer(400, _error(str(error))))
        else:
            self._settle(slot, _answer(200, msgspec.json.encode({"name": name, verb: True})))

    def _binary_length(self) -> int | None:
        if self._json_length is None:
            return None
        if not self._json_length.isdigit():
            raise Unfit("Inference-Header-Content-Length: a number is needed")
        return int(self._json_length)

    def _predicted(
        self, slot: list[bytes | None], done: asyncio.Future[Arrays], shape: Any
    ) -> None:
        error = done.exception()
        if error is not None:
            self._settle(slot, _answer(400, _error(str(error))))
            return
        try:
            body, json_length = shape(done.result())
        except (Unfit, ValueError, TypeError) as cause:
            self._settle(slot, _answer(400, _error(f"the answer cannot be shown: {cause}")))
            return
        extra = b""
        kind = b"application/json"
        if json_length is not None:
            extra = b"Inference-Header-Content-Length: %d\r\n" % json_length
            kind = b"application/octet-stream"
        self._settle(slot, _answer(200, body, kind, extra))

    def _get(self, path: str) -> dict[str, Any]:
        """Return what is known under *path*.

        Raises:
            Refused: when nothing is, or the models are not loaded yet.
        """
        names = self._repository.names
        if path in ("/", "/v2/health/live"):
            return {"live": True, "status": "alive"}
        if path == "/v2/health/ready":
            if not names and not self._repository.settled:
                raise Refused(503, "no model is loaded yet")
            return {"ready": True}
        if path == "/v2":
            return {
                "name": "lockstep",
                "version": __version__,
                "extensions": ["binary_tensor_data", "model_repository"],
            }
        if path in ("/v1/models", "/v2/models"):
            return {"models": names}
        settled = self._repository.settled
        if not names and not settled and path.startswith(("/v1/", "/v2/")):
            raise Refused(503, "the model is not loaded yet")
        if match := _V1.fullmatch(path):
            return {"name": self._repository.get(match[1]).name, "ready": True}
        if match := _V2.fullmatch(path):
            model = self._repository.get(match[1])
            return {"name": model.name, "ready": True} if match[2] else v2.metadata(model)
        raise Refused(404, f"nothing is at {path}")


def _stated_uri(body: bytes) -> str:
    """Return the URI that a call of the repository names in its parameters; empty for none.

    Raises:
        Unfit: when the body is no request of that kind.
    """
    if not body:
        return ""
    try:
        told = msgspec.json.decode(body, type=_Change)
    except msgspec.DecodeError as error:
        raise Unfit(f"malformed request: {error}") from error
    return str(told.parameters.get("storage_uri", ""))


def _error(message: str) -> bytes:
    return msgspec.json.encode({"error": message})


def _answer(
    status: int, body: bytes, kind: bytes = b"application/json", extra: bytes = b""
) -> bytes:
    head = b"Content-Type: %b\r\nContent-Length: %d\r\n%b\r\n" % (kind, len(body), extra)
    return _LINES[status] + head + body
