"""A fake API server that fails on command: one collection of ConfigMaps over plain HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from tests.support.objects import History

from lockstep.api.core import ConfigMap
from lockstep.kube.client import Client
from lockstep.kube.config import ClusterConfig


@dataclass(frozen=True)
class Fault:
    """What goes wrong with one request."""

    kind: str
    """status, drop (no answer), cut (the stream breaks), stall (it falls silent), gone, end."""
    after: int = 0
    """How many events of a watch come before it happens."""
    status: int = 500
    headers: dict[str, str] = field(default_factory=dict)
    reason: str = ""
    causes: tuple[dict[str, str], ...] = ()


TOO_LARGE = Fault("status", status=504, causes=({"reason": "ResourceVersionTooLarge"},))


@dataclass(frozen=True)
class Seen:
    """A request that the server got."""

    at: float
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    @property
    def watch(self) -> bool:
        return "watch" in self.query


class FakeServer:
    """Serves a history; each request takes the next fault from ``faults``, if one is left."""

    def __init__(self, *, streams: bool = True) -> None:
        self.history = History()
        self.streams = streams
        self.faults: deque[Fault | None] = deque()
        self.repeats = False
        """Whether every event is sent twice."""
        self.seen: list[Seen] = []
        self.answer: Any = None
        """What requests to other paths are answered with."""
        self._changed = asyncio.Event()
        self._runner: web.AppRunner | None = None
        self.url = ""

    async def start(self) -> FakeServer:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._serve)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def close(self) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    def client(self, **options: Any) -> Client:
        return Client(ClusterConfig(server=self.url), **options)

    def put(self, name: str, value: str) -> None:
        self.history.put(name, value)
        self._changed.set()

    def delete(self, name: str) -> None:
        self.history.delete(name)
        self._changed.set()

    def restore(self, history: History) -> None:
        """Go back to an earlier state, as a server does that was restored from a backup."""
        self.history = history
        assert self._runner is not None
        assert self._runner.server is not None
        for connection in list(self._runner.server.connections):
            connection.force_close()
        self._changed.set()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        query = dict(request.query)
        self.seen.append(
            Seen(time.monotonic(), request.method, request.path, query, dict(request.headers), body)
        )
        fault = self.faults.popleft() if self.faults else None
        if fault is not None and fault.kind == "drop":
            assert request.transport is not None
            request.transport.close()
            return web.Response()
        if fault is not None and fault.kind == "status":
            return _status(fault)
        if not request.path.endswith("/configmaps"):
            return web.json_response(self.answer or {"metadata": {"name": "x"}})
        if "watch" in query:
            return await self._watch(request, query, fault)
        return self._list(query)

    def _list(self, query: dict[str, str]) -> web.Response:
        start = int(query.get("continue") or 0)
        limit = int(query.get("limit") or 10**9)
        objects = sorted(self.history.objects.items())
        page = [as_object(obj) for _, obj in objects[start : start + limit]]
        metadata = {"resourceVersion": str(self.history.version)}
        if start + limit < len(objects):
            metadata["continue"] = str(start + limit)
        return web.json_response({"metadata": metadata, "items": page})

    async def _watch(
        self, request: web.Request, query: dict[str, str], fault: Fault | None
    ) -> web.StreamResponse:
        streaming = query.get("sendInitialEvents") == "true"
        if streaming and not self.streams:
            return _status(Fault("status", status=422, reason="Invalid"))
        if int(query["resourceVersion"]) > self.history.version:
            return _status(TOO_LARGE if streaming else Fault("status", status=410))
        response = web.StreamResponse()
        await response.prepare(request)
        with contextlib.suppress(ConnectionError):
            sent = 0
            async for line in self._lines(query["resourceVersion"], streaming):
                if fault is not None and sent >= fault.after:
                    await self._fail(request, response, fault)
                    return response
                await response.write(line)
                sent += 1
        return response

    async def _fail(self, request: web.Request, response: web.StreamResponse, fault: Fault) -> None:
        if fault.kind == "gone":
            await response.write(as_event("ERROR", _gone()))
        elif fault.kind == "stall":
            await asyncio.Event().wait()
        elif fault.kind == "cut":
            assert request.transport is not None
            request.transport.abort()

    async def _lines(self, version: str, streaming: bool) -> AsyncIterator[bytes]:
        if streaming:
            at = self.history.version
            for event in self.history.initial():
                yield as_line(event)
        else:
            at = int(version)
            if at < self.history.compacted:
                yield as_event("ERROR", _gone())
                return
        while True:
            self._changed.clear()
            for event in [e for e in self.history.events if int(e.resource_version) > at]:
                at = int(event.resource_version)
                for _ in range(2 if self.repeats else 1):
                    yield as_line(event)
            # A bookmark now and then, so that faults have something to come after.
            yield as_event("BOOKMARK", {"metadata": {"resourceVersion": str(at)}})
            await self._changed.wait()


def as_object(obj: ConfigMap) -> dict[str, Any]:
    meta = obj.metadata
    return {
        "metadata": {
            "name": meta.name,
            "namespace": meta.namespace,
            "uid": meta.uid,
            "resourceVersion": meta.resource_version,
            "labels": meta.labels,
        },
        "data": obj.data,
    }


def as_line(event: Any) -> bytes:
    if event.type == "BOOKMARK":
        meta: dict[str, Any] = {"resourceVersion": event.resource_version}
        if event.synced:
            meta["annotations"] = {"k8s.io/initial-events-end": "true"}
        return as_event("BOOKMARK", {"metadata": meta})
    return as_event(event.type, as_object(event.object))


def as_event(type_: str, obj: dict[str, Any]) -> bytes:
    return json.dumps({"type": type_, "object": obj}).encode() + b"\n"


def _gone() -> dict[str, Any]:
    return {"kind": "Status", "metadata": {}, "code": 410, "reason": "Expired", "message": "old"}


def _status(fault: Fault) -> web.Response:
    body = {
        "kind": "Status",
        "code": fault.status,
        "reason": fault.reason,
        "message": f"made to fail with {fault.status}",
        "details": {"causes": list(fault.causes)},
    }
    return web.json_response(body, status=fault.status, headers=fault.headers)
