"""A server without a socket: one collection of ConfigMaps behind the client's transport."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.support.fake_server import as_event, as_line, as_object
from tests.support.objects import History

from lockstep.kube.errors import Unreachable
from lockstep.kube.transport import Request, Response

BOOKMARKS = 60.0
"""Seconds between two bookmarks, as a real server sends them."""
GONE = {"kind": "Status", "metadata": {}, "code": 410, "reason": "Expired", "message": "old"}


class ModelServer:
    """Lists and watches a history; it may be restarted, and restored to what it was."""

    def __init__(self, *, streams: bool = True) -> None:
        self.history = History()
        self.streams = streams
        """Whether it knows streaming lists."""
        self.repeats = False
        """Whether every event is sent twice."""
        self.watches = 0
        """How many watches are open."""
        self._generation = 0
        self._changed = asyncio.Event()

    def put(self, name: str, value: str) -> None:
        """Create or change an object."""
        self.history.put(name, value)
        self._tell()

    def delete(self, name: str) -> None:
        """Delete an object, if it is there."""
        self.history.delete(name)
        self._tell()

    def saved(self) -> History:
        """Return a backup."""
        return copy.deepcopy(self.history)

    def restart(self, backup: History | None = None) -> None:
        """Break all watches; go on with *backup* where one is given."""
        if backup is not None:
            self.history = copy.deepcopy(backup)
        self._generation += 1
        self._tell()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def send(self, request: Request) -> Response:
        """Answer a list."""
        query = _query(request)
        names = sorted(self.history.objects)
        start = int(query.get("continue", 0))
        page = names[start : start + int(query.get("limit", len(names) + 1))]
        metadata = {"resourceVersion": str(self.history.version)}
        if start + len(page) < len(names):
            metadata["continue"] = str(start + len(page))
        items = [as_object(self.history.objects[name]) for name in page]
        return Response(200, {}, json.dumps({"metadata": metadata, "items": items}).encode())

    async def open(self, request: Request) -> ModelStream:
        """Answer a watch."""
        query = _query(request)
        version, initial = int(query["resourceVersion"]), "sendInitialEvents" in query
        if initial and not self.streams:
            return ModelStream(self, 422, [_failure(422, "Invalid")])
        if version > self.history.version:
            causes = [{"reason": "ResourceVersionTooLarge"}]
            return ModelStream(self, 504, [_failure(504, "Timeout", causes)])
        if not initial and version < self.history.compacted:
            return ModelStream(self, 410, [json.dumps(GONE).encode()])
        return ModelStream(self, 200, [], query)

    async def close(self) -> None:
        """There are no connections."""

    async def lines(self, version: int, initial: bool, seconds: float) -> AsyncIterator[bytes]:
        """Yield what a watch brings, until it has lasted *seconds* or the server restarts."""
        loop = asyncio.get_running_loop()
        generation, end = self._generation, loop.time() + seconds
        if initial:
            version = self.history.version
            for event in self.history.initial():
                yield as_line(event)
        while loop.time() < end:
            if generation != self._generation:
                raise Unreachable("Connection", "the server was restarted")
            changed = self._changed
            if version < self.history.compacted and version < self.history.version:
                yield as_event("ERROR", GONE)
                return
            for event in self.history.after(str(version)) or ():
                version = int(event.resource_version)
                for _ in range(1 + self.repeats):
                    yield as_line(event)
            try:
                async with asyncio.timeout(min(BOOKMARKS, end - loop.time())):
                    await changed.wait()
            except TimeoutError:
                yield as_event("BOOKMARK", {"metadata": {"resourceVersion": str(version)}})


class ModelStream:
    """An answer of the model: bytes that are there, or a watch."""

    headers: Mapping[str, str] = {}

    def __init__(
        self,
        server: ModelServer,
        status: int,
        body: list[bytes],
        query: Mapping[str, str] | None = None,
    ) -> None:
        self.status = status
        self._server = server
        self._body = body
        self._query = query
        self._open = query is not None
        server.watches += self._open

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the body in pieces that have nothing to do with lines."""
        for chunk in self._body:
            yield chunk
        if self._query is None:
            return
        lines = self._server.lines(
            int(self._query["resourceVersion"]),
            "sendInitialEvents" in self._query,
            float(self._query["timeoutSeconds"]),
        )
        async for line in lines:
            for start in range(0, len(line), 100):
                yield line[start : start + 100]

    async def close(self) -> None:
        """Let go of the watch."""
        self._server.watches -= self._open
        self._open = False


def _query(request: Request) -> dict[str, str]:
    return {key: values[0] for key, values in parse_qs(urlsplit(request.target).query).items()}


def _failure(status: int, reason: str, causes: list[Any] | None = None) -> bytes:
    body = {"kind": "Status", "code": status, "reason": reason, "details": {"causes": causes or []}}
    return json.dumps(body).encode()
