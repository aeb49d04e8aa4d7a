"""A gang that cannot be completed gives back all of its nodes, pod by pod and by uid."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from tests.support.drawn import add, draw_gang, node, pod

from lockstep.api.resource import Resource
from lockstep.kube.client import Client
from lockstep.kube.config import ClusterConfig
from lockstep.kube.errors import ApiError, NotFound
from lockstep.runtime.manager import Manager
from lockstep.scheduler.core.cycle.result import CycleResult
from lockstep.scheduler.core.cycle.timers import ROLLBACK
from lockstep.scheduler.core.model.decisions import Rollback
from lockstep.scheduler.core.model.workload import WorkloadKey
from lockstep.scheduler.event_handlers import EventHandlers
from lockstep.scheduler.loop import Scheduler
from lockstep.scheduler.metrics import Metrics

GANG = WorkloadKey("Gang", "default", "half")


class Server:
    """Keeps what is deleted and told; deletions are answered with *failures*, by pod."""

    def __init__(self, failures: dict[str, Exception]) -> None:
        self.failures = failures
        self.deleted: list[tuple[str, str, str]] = []
        self.told: list[tuple[str, str]] = []

    async def delete(self, res: Resource[Any], name: str, namespace: str, *, uid: str) -> None:
        self.deleted.append((res.kind, f"{namespace}/{name}", uid))
        if name in self.failures:
            raise self.failures[name]

    def event(self, _: object, kind: str, reason: str, message: str) -> None:
        self.told.append((f"{kind} {reason}", message))


@pytest.mark.parametrize(
    "failures",
    [
        {},
        {"half-0": NotFound(404, "NotFound", "gone")},
        {"half-0": ApiError(503, "ServiceUnavailable", "down")},
        {"half-0": ConnectionResetError("reset")},
    ],
    ids=["all are there", "one is gone already", "the server is down", "the connection breaks"],
)
async def test_placed_pods_are_deleted_and_the_gang_waits_anew(
    failures: dict[str, Exception],
):
    server = Server(failures)
    manager = Manager(Client(ClusterConfig(server="http://h")), name="x", leader_elect=False)
    metrics = Metrics(CollectorRegistry())
    scheduler = Scheduler(server, EventHandlers(manager), server, metrics)  # type: ignore[arg-type]
    cluster = scheduler.cluster
    cluster.set_node(node("a", gpus=16))
    add(cluster, draw_gang("half: 3x8"))
    for number in (0, 1):
        cluster.set_pod(pod(f"half-{number}", gpus=8, on="a", held="0", gang="half", group="all"))
    bound = tuple(cluster.workloads[GANG].bound)
    assert len(bound) == 2
    cluster.touched.clear()
    async with asyncio.TaskGroup() as group:
        scheduler._act(CycleResult(rollbacks=[Rollback(GANG, bound)]), group)
        assert GANG in scheduler._binder.busy, "nothing is decided about it meanwhile"
    assert server.deleted == [
        ("Pod", "default/half-0", "uid-half-0"),
        ("Pod", "default/half-1", "uid-half-1"),
    ]
    ((reason, message),) = server.told
    assert reason == "Warning RolledBack"
    assert f"within {ROLLBACK.seconds:g} s" in message
    assert "its 2 pods" in message
    assert GANG not in scheduler._binder.busy
    assert cluster.touched == {GANG}, "it is looked at again in the next round"
