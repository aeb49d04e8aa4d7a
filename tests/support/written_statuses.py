"""A status writer with a recording server."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from msgspec.structs import replace
from prometheus_client import CollectorRegistry
from tests.support.drawn import add, draw, draw_gang

from lockstep.api.core import PODS, Pod
from lockstep.api.gang import Gang
from lockstep.api.wire import convert, to_builtins
from lockstep.kube.errors import ApiError, Conflict
from lockstep.scheduler.binder import Binder
from lockstep.scheduler.core.cycle.decider import Decider
from lockstep.scheduler.core.model.workload import WorkloadKey
from lockstep.scheduler.core.state.cluster import Cluster
from lockstep.scheduler.metrics import Metrics
from lockstep.scheduler.status_writer import StatusWriter


class Server:
    """Keeps what is patched, as an API server and its informer would show it."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.gangs: Counter[str] = Counter()
        self.pods: Counter[str] = Counter()
        self.shown: dict[tuple[str, str], Pod] = {}
        self.events: list[tuple[str, str]] = []
        self.failures = 0
        self.unknown: set[str] = set()
        """Status fields that the server's CRD does not have."""
        self.versions: dict[str, str] = {}
        """By gang or pod that somebody else has changed, its version; nobody has seen it yet."""
        self.refused: list[str] = []

    async def patch(self, res: Any, name: str, body: Any, namespace: str, **_: Any) -> Any:
        await asyncio.sleep(0)
        if self.failures:
            self.failures -= 1
            raise ApiError(500, "InternalError", "down")
        sent = body.get("metadata", {}).get("resourceVersion")
        if sent is not None and sent != self.versions.get(name, sent):
            self.refused.append(name)
            raise Conflict(409, "Conflict", "the object has been modified")
        if res is PODS:
            self.pods[name] += 1
            old = self.shown[namespace, name]
            merged = {**to_builtins(old.status), **body["status"]}
            new = convert({k: v for k, v in merged.items() if v is not None}, type(old.status))
            self.shown[namespace, name] = replace(old, status=new)
            return self.shown[namespace, name]
        self.gangs[name] += 1
        gang = self.cluster.workloads[WorkloadKey("Gang", namespace, name)].gang
        assert gang is not None
        merged = {**to_builtins(gang.status), **body["status"]}
        kept = {k: v for k, v in merged.items() if v is not None and k not in self.unknown}
        status = convert(kept, type(gang.status))
        if status == gang.status:
            return gang
        newer = int(gang.metadata.resource_version or "0") + 1
        metadata = replace(gang.metadata, resource_version=str(newer))
        return replace(gang, metadata=metadata, status=status)

    def get(self, namespace: str, name: str) -> Pod | None:
        return self.shown.get((namespace, name))

    def event(self, obj: Gang | Pod, _type: str, reason: str, _message: str) -> None:
        self.events.append((obj.metadata.name, reason))


class World:
    """A decider and a writer over one cluster, with gangs that wait."""

    def __init__(self, drawing: str, gangs: int) -> None:
        self.cluster = draw(Cluster(), drawing)
        self.server = Server(self.cluster)
        for i in range(gangs):
            drawn = draw_gang(f"g{i}: 2x8", created=f"2026-01-01T00:{i // 60:02}:{i % 60:02}Z")
            add(self.cluster, drawn)
            for one in drawn.pods:
                self.server.shown["default", one.metadata.name] = one
        self.decider = Decider(self.cluster)
        metrics = Metrics(CollectorRegistry())
        self.binder = Binder(self.server, self.cluster, metrics, lambda: None)
        self.writer = StatusWriter(self.server, self.server, self.decider, self.server, self.binder)

    def decide(self) -> None:
        self.writer.take(self.decider.decide(0.0))

    def gang_key(self, name: str) -> WorkloadKey:
        return WorkloadKey("Gang", "default", name)

    def gang(self, name: str) -> Gang:
        found = self.cluster.workloads[self.gang_key(name)].gang
        assert found is not None
        return found

    def words(self, pod: str) -> str:
        return "".join(c.message for c in self.server.shown["default", pod].status.conditions)

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.writer.run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
