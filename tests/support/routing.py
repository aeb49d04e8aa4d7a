"""A router's data path for tests: a table behind a socket, and replicas that say what they got."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.support.waiting import stretched

from lockstep.api.core import Pod, PodStatus
from lockstep.api.meta import Condition, ObjectMeta
from lockstep.api.names import REVISION_LABEL
from lockstep.api.serving import Backend, Route, RouteSpec
from lockstep.kube.cache import Change
from lockstep.serve.router.protocol import ClientSide
from lockstep.serve.router.sorting import Sorting
from lockstep.serve.router.table import Table

READ = 20.0
Answering = Callable[[str, bytes], tuple[int, Any]]
"""From path and body of a request to status and body of its answer."""


@dataclass
class Replica:
    """A server of one revision."""

    name: str
    answer: Answering
    port: int = 0
    got: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                first, *lines = head.split("\r\n")
                headers = {k.lower(): v for k, _, v in (one.partition(": ") for one in lines)}
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                path = first.split(" ")[1]
                self.got.append((path, headers, body))
                status, found = self.answer(path, body)
                data = found if isinstance(found, bytes) else json.dumps(found).encode()
                kind = b"Content-Type: application/json\r\n"
                said = b"HTTP/1.1 %d X\r\n%bContent-Length: %d\r\n\r\n" % (status, kind, len(data))
                writer.write(said + data)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            writer.close()


@dataclass
class Answered:
    """An answer as a client sees it."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """Return the body, read."""
        return json.loads(self.body)


class Router:
    """A table behind a socket."""

    def __init__(self) -> None:
        self.table = Table("", lambda lane, urgent: None)
        self.sorting = Sorting(self.table.lanes)
        self.clients: set[ClientSide] = set()
        self.port = 0
        self._stack: list[asyncio.Server] = []

    def client_side(self) -> ClientSide:
        """Return what takes a connection."""
        return ClientSide(self.table.find, self.table.unknown, self.clients, self.sorting)

    async def replica(self, revision: str, answer: Answering, *, name: str = "") -> Replica:
        """Start a replica of *revision* in the namespace ``n``."""
        found = Replica(name or revision, answer)
        server = await asyncio.start_server(found.serve, "127.0.0.1", 0)
        self._stack.append(server)
        found.port = server.sockets[0].getsockname()[1]
        return found

    def ready(self, revision: str, uid: str = "") -> None:
        """Tell the router that a replica of *revision* is ready."""
        labels = {REVISION_LABEL: revision}
        meta = ObjectMeta(name=uid or revision, namespace="n", uid=uid or revision, labels=labels)
        ready = Condition(type="Ready", status="True")
        status = PodStatus(phase="Running", pod_ip="127.0.0.1", conditions=[ready])
        self.table.on_pod(Change(None, Pod(metadata=meta, status=status)))

    def route(self, name: str, *backends: Backend, **spec: Any) -> None:
        """Tell the router of a route."""
        meta = ObjectMeta(name=name, namespace="n", uid=name)
        made = RouteSpec(backends=list(backends), **spec)
        self.table.on_route(Change(None, Route(metadata=meta, spec=made)))

    async def serves(self, name: str, answer: Answering, **spec: Any) -> Replica:
        """Have one replica that is ready, and a route of its *name* to it."""
        found = await self.replica(name, answer)
        self.route(name, Backend(revision=name, port=found.port), **spec)
        self.ready(name)
        return found

    async def ask(
        self, path: str, body: Any = None, method: str = "POST", **headers: str
    ) -> Answered:
        """Return the answer to a request."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        lines = [f"{method} {path} HTTP/1.1", "Host: h", f"Content-Length: {len(data)}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        async with asyncio.timeout(stretched(READ)):
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
            writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + data)
            first, *rest = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            said = {k.lower(): v for k, _, v in (one.partition(": ") for one in rest)}
            found = await reader.readexactly(int(said.get("content-length", "0")))
            writer.close()
        return Answered(int(first.split(" ")[1]), said, found)


@asynccontextmanager
async def routing() -> AsyncIterator[Router]:
    """Run a router's data path."""
    router = Router()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(router.client_side, "127.0.0.1", 0)
    router.port = server.sockets[0].getsockname()[1]
    try:
        yield router
    finally:
        server.close()
        router.sorting.close()
        for one in router._stack:
            one.close()
