"""Bound pods that become Running a second on simulated nodes, and how fast nodes are registered."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.figure import Figure
from lockstep.api.core import NODES, PODS, Pod
from lockstep.kube.cache import Change
from lockstep.kube.client import Client
from lockstep.kube.config import ClusterConfig
from lockstep.kube.informer import Informer

NODE_COUNT = 1000
POD_COUNT = 5000
PARALLEL = 64
RATE_LIMIT = 1000.0
KWOK = 480.0


def run() -> list[Figure]:
    with tempfile.TemporaryDirectory() as directory:
        data = Path(directory)
        server = _process("apiserver", "--data", str(data), "--port", "0")
        try:
            registered, rate = asyncio.run(_measure(data / "kubeconfig"))
        finally:
            server.kill()
            server.wait()
    return [
        Figure("simulated nodes registered, with lease", registered, "/s", "higher"),
        Figure(
            "bound pods that become Running",
            rate,
            "/s",
            "higher",
            RATE_LIMIT,
            peer=KWOK,
            peer_name="kwok with kube-apiserver and etcd",
            source="an earlier measurement, 2 cores",
        ),
    ]


def _process(*arguments: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-m", "lockstep", *arguments], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith("ready")
    return process


async def _measure(kubeconfig: Path) -> tuple[float, float]:
    began = time.perf_counter()
    simulation = _simulate(kubeconfig)
    registered = NODE_COUNT / (time.perf_counter() - began)
    # Pods are bound while nobody runs them, so that only the way from bound to Running is timed.
    _end(simulation)
    async with Client(ClusterConfig.load(kubeconfig)) as client:
        nodes = [node.metadata.name for node in (await client.list(NODES)).items]
        await _create(client, nodes)
        running = _Running()
        informer = Informer(client, PODS)
        informer.subscribe(running)
        following = asyncio.create_task(informer.run())
        await informer.wait_synced()
        simulation = await asyncio.to_thread(_simulate, kubeconfig)
        try:
            await asyncio.wait_for(running.all.wait(), 60)
        finally:
            _end(simulation)
            following.cancel()
    return registered, POD_COUNT / (running.last - running.first)


def _simulate(kubeconfig: Path) -> subprocess.Popen[str]:
    return _process("simulate-nodes", f"{NODE_COUNT}x8", "--kubeconfig", str(kubeconfig))


def _end(process: subprocess.Popen[str]) -> None:
    process.terminate()
    process.wait(20)


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


async def _create(client: Client, nodes: list[str]) -> None:
    numbers = iter(range(POD_COUNT))

    async def worker() -> None:
        for number in numbers:
            await client.create(PODS, _pod(number, nodes[number % len(nodes)]))

    await asyncio.gather(*(worker() for _ in range(PARALLEL)))


def _pod(number: int, node: str) -> dict[str, Any]:
    main = {"name": "main", "image": "x", "resources": {"limits": {"nvidia.com/gpu": 1}}}
    return {
        "metadata": {"name": f"p{number}"},
        "spec": {"nodeName": node, "restartPolicy": "Never", "containers": [main]},
    }
