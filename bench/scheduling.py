"""Pods bound a second on a real API server, beside kube-scheduler and a loop that only binds."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.support.kube_apiserver import KubeApiServer

from bench.figure import Figure
from bench.support import binds, schedulers
from bench.support.cluster import add_nodes, add_pods, pod, real_cluster

NODE_COUNT = 1000
POD_COUNT = 5000
DEADLINE = 120.0
Start = Callable[[Path], contextlib.AbstractContextManager[subprocess.Popen[bytes]]]


@dataclass(frozen=True, slots=True)
class Storm:
    """How fast a backlog was bound."""

    first: float
    """Seconds from the start of the process to the first bind."""
    last: float
    cpu: float
    """CPU seconds of the scheduler."""

    @property
    def rate(self) -> float:
        """Return the pods bound a second, from the first to the last."""
        return (POD_COUNT - 1) / (self.last - self.first)


def backlog(start: Start, scheduler: str, encoding: str) -> Storm:
    """Let a scheduler find all pods waiting, and see how long it takes to bind them."""
    with real_cluster() as server:
        asyncio.run(_furnish(server, scheduler))
        watch = binds.BindWatch(server, encoding)
        began = time.perf_counter()
        with start(server.kubeconfig) as process:
            last = watch.wait(POD_COUNT, DEADLINE) - began
            cpu = cpu_seconds(process.pid)
        watch.close()
        asyncio.run(check(server, POD_COUNT))
        return Storm(watch.times[0] - began, last, cpu)


def bare() -> float:
    """Return what the loop that only binds reaches."""
    with real_cluster() as server:
        asyncio.run(_furnish(server, "nobody"))
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "bench.support.bare_loop",
                str(server.kubeconfig),
                str(NODE_COUNT),
            ],
            stdout=subprocess.PIPE,
            check=True,
        )
        return float(done.stdout)


async def _furnish(server: KubeApiServer, scheduler: str) -> None:
    async with server.client() as client:
        await add_nodes(client, NODE_COUNT)
        await add_pods(client, (pod(f"p{n}", scheduler=scheduler) for n in range(POD_COUNT)))


async def check(server: KubeApiServer, count: int) -> None:
    """Hold the outcome to what any scheduler must keep: every pod placed, no node overfull."""
    from lockstep.api.core import PODS

    async with server.client() as client:
        pods = (await client.list(PODS)).items
    load = Counter(p.spec.node_name for p in pods)
    assert len(pods) == count, len(pods)
    assert "" not in load, f"{load['']} pods are without a node"
    assert max(load.values()) <= 8, load.most_common(1)


def cpu_seconds(pid: int) -> float:
    """Return the CPU time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def run() -> list[Figure]:
    kube = backlog(schedulers.kube_scheduler, "default-scheduler", binds.PROTOBUF)
    print("kube-scheduler", kube, kube.rate, POD_COUNT / kube.last)
    loop = bare()
    print("bare", loop)
    ours = backlog(schedulers.lockstep, "lockstep", binds.JSON)
    print("ours", ours, ours.rate, POD_COUNT / ours.last)
    return []
