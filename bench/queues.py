"""Queues: decisions alone, without an API server, over the shapes that others publish.

Kueue's baseline is five cohorts of six queues with 500 workloads each, which arrive and end by its
own timetable; here the timetable is a virtual clock and the time of the decisions is added up, as
seconds of one processor.
"""

from __future__ import annotations

import heapq
import time
from dataclasses import dataclass

from bench.figure import Figure
from bench.scheduler_decisions import ROUNDS, cluster_of, pod_of
from lockstep.api.core import Pod, PriorityClass
from lockstep.api.gang import Gang
from lockstep.api.meta import ObjectMeta
from lockstep.api.queue import Queue
from lockstep.api.wire import convert
from lockstep.scheduler.core.cycle.decider import Decider
from lockstep.scheduler.core.state.cluster import Cluster

GPU = "nvidia.com/gpu"


@dataclass(frozen=True)
class Class:
    """One of Kueue's classes of workloads, as its baseline generates them for each queue."""

    name: str
    count: int
    every: float
    cpus: int
    runtime: float
    priority: int


CLASSES = (
    Class("small", 350, 0.1, 1, 0.2, 50),
    Class("medium", 100, 0.5, 5, 0.5, 100),
    Class("large", 50, 1.2, 20, 1.0, 200),
)
COHORTS, QUEUES = 5, 6


def queue_of(name: str, **spec: object) -> Queue:
    return convert({"metadata": {"name": name}, "spec": spec}, Queue)


def workload(name: str, queue: str, kind: Class) -> Pod:
    container = {"name": "main", "resources": {"requests": {"cpu": str(kind.cpus)}}}
    return convert(
        {
            "metadata": {
                "name": name,
                "namespace": "default",
                "uid": name,
                "labels": {"lockstep.dev/queue": queue},
            },
            "spec": {
                "schedulerName": "lockstep",
                "priority": kind.priority,
                "containers": [container],
            },
        },
        Pod,
    )


class Timetable:
    """Kueue's baseline on a virtual clock."""

    def __init__(self) -> None:
        self.cluster = cluster_of(10)
        for cohort in range(COHORTS):
            self.cluster.set_queue(queue_of(f"cohort-{cohort}", limit={"cpu": 20 * QUEUES}))
            for number in range(QUEUES):
                spec = {"parent": f"cohort-{cohort}", "guaranteed": {"cpu": 20}}
                self.cluster.set_queue(
                    queue_of(f"queue-{cohort}-{number}", borrowingLimit={"cpu": 100}, **spec)
                )
        self.decider = Decider(self.cluster)
        self.pods: dict[str, tuple[Pod, Class]] = {}
        self.events: list[tuple[float, int, str, int]] = []
        self.attempt: dict[str, int] = {}
        self.admitted = self.evicted = 0
        for cohort in range(COHORTS):
            for number in range(QUEUES):
                self._plan_arrivals(f"queue-{cohort}-{number}")
        heapq.heapify(self.events)

    def _plan_arrivals(self, queue: str) -> None:
        for kind in CLASSES:
            for i in range(kind.count):
                name = f"{queue}-{kind.name}-{i}"
                self.pods[name] = workload(name, queue, kind), kind
                self.events.append((i * kind.every, 0, name, 0))

    def run(self) -> float:
        """Play it to the end; return the seconds that the scheduler's core took."""
        spent = 0.0
        while self.events:
            now = self.events[0][0]
            due = []
            while self.events and self.events[0][0] <= now:
                due.append(heapq.heappop(self.events))
            started = time.process_time()
            placed = self._moment(now, due)
            spent += time.process_time() - started
            for name in placed:
                self.attempt[name] = self.attempt.get(name, 0) + 1
                end = now + self.pods[name][1].runtime
                heapq.heappush(self.events, (end, 1, name, self.attempt[name]))
        return spent

    def _moment(self, now: float, due: list[tuple[float, int, str, int]]) -> list[str]:
        for _, ends, name, attempt in due:
            if not ends:
                self.cluster.set_pod(self.pods[name][0])
            elif self.attempt[name] == attempt:
                self.cluster.remove_pod("default", name)
                self.admitted += 1
        placed: list[str] = []
        while True:
            result = self.decider.decide(now)
            assert not result.errors, result.errors
            placed += [a.member.name for p in result.placements for a in p.assignments]
            self._confirm(placed)
            for eviction in result.evictions:
                for member in eviction.victims:
                    self.evicted += 1
                    self.attempt[member.name] = self.attempt.get(member.name, 0) + 1
                    self.cluster.remove_pod("default", member.name)
                    self.cluster.set_pod(self.pods[member.name][0])
            if not (result.more or result.evictions):
                gone = {name for name in placed if not self.cluster.pods["default", name].node}
                return [name for name in placed if name not in gone]

    def _confirm(self, names: list[str]) -> None:
        for name in names:
            self.cluster.pods["default", name].assumed = False


def admissions() -> float:
    """Workloads admitted a second of the core's time."""
    timetable = Timetable()
    spent = timetable.run()
    assert timetable.admitted == COHORTS * QUEUES * sum(kind.count for kind in CLASSES)
    return timetable.admitted / spent


def full(nodes: int, gangs: int, members: int, gpus: int) -> Cluster:
    """A cluster filled with gangs of the queue borrower: unimportant ones, then important ones."""
    cluster = cluster_of(nodes)
    for name, value in (("low", 1), ("high", 9)):
        cluster.set_priority_class(PriorityClass(metadata=ObjectMeta(name=name), value=value))
    for name, amount in (("owner", 8 * nodes // 2), ("borrower", 0)):
        cluster.set_queue(queue_of(name, guaranteed={GPU: amount}))
    decider = Decider(cluster)
    for i in range(8 * nodes // (members * gpus)):
        priority = "low" if i < gangs else "high"
        submit(cluster, f"running-{i}", members, gpus, "borrower", priority, None)
        if i % 100 == 0:
            decider.decide(0.0)
    while decider.decide(0.0).more:
        pass
    for member in cluster.pods.values():
        assert member.node
        member.assumed = False
    return cluster


def submit(  # noqa: PLR0917
    cluster: Cluster,
    name: str,
    members: int,
    gpus: int,
    queue: str,
    priority: str,
    tier: str | None,
) -> None:
    spec = {
        "minMember": members,
        "queue": queue,
        "priorityClassName": priority,
        "topology": {"required": tier} if tier else None,
    }
    meta = {"name": name, "namespace": "default"}
    cluster.set_gang(convert({"metadata": meta, "spec": spec}, Gang))
    for i in range(members):
        cluster.set_pod(pod_of(f"{name}-{i}", gpus=gpus, gang=name))


def eviction_seconds(cluster: Cluster, members: int, *, queue: str, tier: str | None) -> float:
    """Seconds from a gang that has no place to the list of who goes for it."""
    decider = Decider(cluster)
    decider.decide(0.0)
    submit(cluster, "late", members, 8, queue, "high", tier)

    started = time.process_time()
    (eviction,) = decider.decide(1.0).evictions
    seconds = time.process_time() - started
    assert len({member.node for member in eviction.victims}) >= members
    return seconds


def run() -> list[Figure]:
    """Measure beside the published figures; the best of a few runs for what takes milliseconds."""
    reclaim = min(
        eviction_seconds(full(1000, 8000, 1, 1), 250, queue="owner", tier=None) for _ in range(2)
    )
    topology = min(
        eviction_seconds(full(2000, 700, 2, 8), 64, queue="borrower", tier="spine")
        for _ in range(ROUNDS)
    )
    published = "published, other machine"
    return [
        Figure(
            "admit 15,000 workloads in 30 queues of 5 cohorts, decisions alone",
            max(admissions() for _ in range(2)),
            "workloads/s",
            limit=427.0,
            peer=42.7,
            peer_name="Kueue, with its API server",
            source=published,
        ),
        Figure(
            "reclaim 250 whole nodes from 8,000 one-GPU jobs, 1,000 nodes",
            reclaim * 1e3,
            "ms",
            "lower",
            limit=1000.0,
            peer=76_300.0,
            peer_name="KAI",
            source=published,
        ),
        Figure(
            "preempt for 64 nodes under one spine, 2,000 nodes, 700 candidates",
            topology * 1e3,
            "ms",
            "lower",
            limit=1000.0,
            peer=40_000.0,
            peer_name="Kueue",
            source=published,
        ),
    ]
