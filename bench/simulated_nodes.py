"""Bound pods that become Running a second, on Lockstep's simulated nodes and on kwok's.

Each is alone with a real API server.
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager

from tests.support import kube_programs
from tests.support.kube_apiserver import KubeApiServer

from bench.figure import Figure
from bench.support.cluster import add_nodes, add_pods, pod, real_cluster, require
from lockstep.api.core import NODES, PODS, Pod
from lockstep.kube.cache import Change
from lockstep.kube.informer import Informer

NODE_COUNT = 1000
POD_COUNT = 3000
DEADLINE = 120.0
ROUNDS = 3
TIMES_KWOK = 2.0
Runner = Callable[[], AbstractContextManager[None]]


def run() -> list[Figure]:
    require("etcd", "kube-apiserver", "kwok", "kwok-stages.yaml")
    rounds = [(_kwok(), *_ours()) for _ in range(ROUNDS)]
    kwok, registered, ours = (statistics.median(figures) for figures in zip(*rounds, strict=True))
    running = Figure("bound pods that become Running", ours, "pods/s", limit=TIMES_KWOK * kwok)
    return [
        Figure("simulated nodes registered, with lease", registered, "nodes/s"),
        running.beside("kwok", kwok),
    ]


def _kwok() -> float:
    """Return the rate of kwok, which takes nodes as it finds them."""
    with real_cluster() as server:
        asyncio.run(_add_nodes(server))
        return asyncio.run(_rate(server, lambda: _running_kwok(server)))


def _ours() -> tuple[float, float]:
    """Return how many nodes a second are registered, and the rate of pods."""
    with real_cluster() as server:
        began = time.perf_counter()
        with _simulating(server):
            registered = NODE_COUNT / (time.perf_counter() - began)
        return registered, asyncio.run(_rate(server, lambda: _simulating(server)))


@contextmanager
def _running_kwok(server: KubeApiServer) -> Iterator[None]:
    programs = kube_programs.kwok(server).start()
    try:
        yield
    finally:
        programs.kill()


@contextmanager
def _simulating(server: KubeApiServer) -> Iterator[None]:
    """Run the simulated nodes; the block begins once all are registered."""
    command = [sys.executable, "-P", "-m", "lockstep", "simulate-nodes", f"{NODE_COUNT}x8"]
    process = subprocess.Popen(
        [*command, "--kubeconfig", str(server.kubeconfig)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("ready")
        yield
    finally:
        process.kill()
        process.wait()


async def _add_nodes(server: KubeApiServer) -> None:
    async with server.client() as client:
        await add_nodes(client, NODE_COUNT)


async def _rate(server: KubeApiServer, runner: Runner) -> float:
    """Bind pods while nobody runs them, so that only the way from bound to Running is timed."""
    async with server.client() as client:
        nodes = [node.metadata.name for node in (await client.list(NODES)).items]
        names = (f"p{number}" for number in range(POD_COUNT))
        await add_pods(client, (pod(n, on=nodes[i % len(nodes)]) for i, n in enumerate(names)))
        running = _Running()
        informer = Informer(client, PODS)
        informer.subscribe(running)
        following = asyncio.create_task(informer.run())
        await informer.wait_synced()
        with ExitStack() as stack:
            await asyncio.to_thread(stack.enter_context, runner())
            await asyncio.wait_for(running.all.wait(), DEADLINE)
        following.cancel()
    return (POD_COUNT - 1) / (running.last - running.first)


class _Running:
    """Counts the pods that run, and notes when the first and the last began to."""

    def __init__(self) -> None:
        self.count = 0
        self.first = self.last = 0.0
        self.all = asyncio.Event()

    def __call__(self, change: Change[Pod]) -> None:
        before = change.old.status.phase if change.old else ""
        if change.new is None or change.new.status.phase != "Running" or before == "Running":
            return
        self.count += 1
        self.last = time.perf_counter()
        self.first = self.first or self.last
        if self.count == POD_COUNT:
            self.all.set()
