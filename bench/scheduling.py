"""Schedulers on a real API server, each alone with it: single pods, many gangs, one big gang.

Beside Lockstep run kube-scheduler and, as the limit, a loop that only binds. Volcano and KAI cannot
be built here: their figures are from an earlier measurement of the same set-up.
"""

from __future__ import annotations

import asyncio
import contextlib
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from tests.support.kube_apiserver import KubeApiServer

from bench.figure import EARLIER, Figure
from bench.support import schedulers
from bench.support.binds import JSON, PROTOBUF, BindWatch
from bench.support.cluster import (
    add_gang,
    add_nodes,
    add_pods,
    cpu_seconds,
    pod,
    real_cluster,
    require,
)
from lockstep.api.core import PODS

NODES = 1000
PODS_ALONE = 5000
ROUNDS = 3
GANGS, GANG_SIZE = 50, 100
BIG_GANG = 512
DEADLINE = 120.0
VOLCANO_SINGLES, VOLCANO_GANGS, KAI_BIG_GANG = 191.0, 19.8, 5.1
"""Pods a second, seconds, seconds: on two cores, etcd without fsync, the same nodes and pods."""
Start = Callable[[Path], contextlib.AbstractContextManager[subprocess.Popen[bytes]]]


@dataclass(frozen=True, slots=True)
class Storm:
    """How a backlog was bound: seconds from the start of the scheduler, and its CPU seconds."""

    first: float
    last: float
    cpu: float

    @property
    def rate(self) -> float:
        """Return the pods bound a second, from the first to the last."""
        return (PODS_ALONE - 1) / (self.last - self.first)


def run() -> list[Figure]:
    require("etcd", "kube-apiserver", "kube-scheduler")
    return [*_singles(), _gangs(), _big_gang()]


def _singles() -> list[Figure]:
    """Let each have the same backlog in turn; the median of the rounds counts."""
    ours, kube, bare = [], [], []
    for _ in range(ROUNDS):
        kube.append(backlog(schedulers.kube_scheduler, "default-scheduler", PROTOBUF))
        bare.append(bare_rate())
        ours.append(backlog(schedulers.lockstep, "lockstep", JSON))
    rate = statistics.median(storm.rate for storm in ours)
    peer = statistics.median(storm.rate for storm in kube)
    limit = statistics.median(bare)
    name = f"{PODS_ALONE:,} single pods waiting, {NODES:,} nodes"
    bound = Figure(f"{name}: bound", rate, "pods/s")
    last = statistics.median(storm.last for storm in ours)
    cpu = statistics.median(storm.cpu for storm in ours)
    return [
        replace(bound, limit=2 * peer).beside("kube-scheduler", peer),
        replace(bound, limit=0.7 * limit).beside("only binding", limit),
        bound.beside("Volcano", VOLCANO_SINGLES, EARLIER),
        Figure(f"{name}: start to last bind", last, "s", "lower").beside(
            "kube-scheduler", statistics.median(storm.last for storm in kube)
        ),
        Figure(f"{name}: the scheduler's CPU", cpu, "s", "lower").beside(
            "kube-scheduler", statistics.median(storm.cpu for storm in kube)
        ),
    ]


def backlog(start: Start, scheduler: str, encoding: str) -> Storm:
    """Let a scheduler find all pods waiting, and see how long it takes to bind them."""
    with real_cluster() as server:
        asyncio.run(_furnish_singles(server, scheduler))
        with BindWatch(server, encoding) as watch:
            began = time.perf_counter()
            with start(server.kubeconfig) as process:
                last = watch.wait(PODS_ALONE, DEADLINE) - began
                cpu = cpu_seconds(process.pid)
        asyncio.run(check(server, PODS_ALONE))
        return Storm(watch.times[0] - began, last, cpu)


def bare_rate() -> float:
    """Return how many pods a second the loop that only binds reaches."""
    with real_cluster() as server:
        asyncio.run(_furnish_singles(server, "nobody"))
        done = subprocess.run(
            [sys.executable, "-m", "bench.support.bare_loop", str(server.kubeconfig), str(NODES)],
            stdout=subprocess.PIPE,
            check=True,
        )
        return float(done.stdout)


async def _furnish_singles(server: KubeApiServer, scheduler: str) -> None:
    async with server.client() as client:
        await add_nodes(client, NODES)
        await add_pods(client, (pod(f"p{n}", scheduler=scheduler) for n in range(PODS_ALONE)))


def _gangs() -> Figure:
    with real_cluster() as server:
        asyncio.run(_furnish_gangs(server))
        with BindWatch(server) as watch:
            began = time.perf_counter()
            with schedulers.lockstep(server.kubeconfig):
                last = watch.wait(GANGS * GANG_SIZE, DEADLINE) - began
        asyncio.run(check(server, GANGS * GANG_SIZE))
    name = f"{GANGS} gangs of {GANG_SIZE} waiting: start to last bind"
    return Figure(name, last, "s", "lower", 4.0).beside("Volcano", VOLCANO_GANGS, EARLIER)


async def _furnish_gangs(server: KubeApiServer) -> None:
    async with server.client() as client:
        await add_nodes(client, NODES)
        for number in range(GANGS):
            await add_gang(client, f"gang-{number}", GANG_SIZE)


def _big_gang() -> Figure:
    with real_cluster() as server:
        asyncio.run(_furnish_nodes(server))
        with BindWatch(server) as watch, schedulers.lockstep(server.kubeconfig) as process:
            schedulers.wait_ready(process)
            complete = asyncio.run(_submit_big_gang(server))
            seconds = watch.wait(BIG_GANG, DEADLINE) - complete
        asyncio.run(check(server, BIG_GANG, spines=1))
    name = f"gang of {BIG_GANG} under one spine: complete to last bind"
    return Figure(name, seconds, "s", "lower", 0.6).beside("KAI", KAI_BIG_GANG, EARLIER)


async def _furnish_nodes(server: KubeApiServer) -> None:
    async with server.client() as client:
        await add_nodes(client, NODES)


async def _submit_big_gang(server: KubeApiServer) -> float:
    """Return when the gang's last pod was there."""
    async with server.client() as client:
        await add_gang(client, "big", BIG_GANG, tier="spine")
        return time.perf_counter()


async def check(server: KubeApiServer, count: int, *, spines: int | None = None) -> None:
    """Hold the outcome to what must be true of it: every pod placed, no node overfull."""
    async with server.client() as client:
        pods = (await client.list(PODS)).items
    load = Counter(p.spec.node_name for p in pods)
    assert len(pods) == count, len(pods)
    assert "" not in load, f"{load['']} pods are without a node"
    assert max(load.values()) <= 8, load.most_common(1)
    if spines is not None:
        assert len({int(name.removeprefix("node-")) // 128 for name in load}) == spines
