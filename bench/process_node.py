"""How long a process node takes to start pods, and to come back after it was killed."""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import aclosing
from pathlib import Path

from bench.figure import Figure
from lockstep.kube.client import Client
from lockstep.kube.config import ClusterConfig
from lockstep.nodes.process.spec import POD_RUNS

START_LIMIT = 100.0
BACK_LIMIT = 1000.0
PODS = 20
TOGETHER = 40
NODE = "bench"
SLEEP = ["sleep", "1000"]


def run() -> list[Figure]:
    with tempfile.TemporaryDirectory() as directory:
        data = Path(directory)
        server = _start("apiserver", "--data", str(data / "cluster"), "--port", "0")
        node = _node(data)
        try:
            one, many = asyncio.run(_measure(data))
            node.kill()
            node.wait()
            began = time.perf_counter()
            node = _node(data)
            back = (time.perf_counter() - began) * 1000
        finally:
            node.terminate()
            node.wait()
            server.kill()
            server.wait()
    return [
        Figure("pod running after its binding (median)", one, "ms", "lower", START_LIMIT),
        Figure("pods started a second, all at once", many, "/s"),
        Figure(f"node back with {TOGETHER} pods adopted", back, "ms", "lower", BACK_LIMIT),
    ]


def _start(part: str, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "lockstep", part, *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline().startswith("ready")
    return process


def _node(data: Path) -> subprocess.Popen[str]:
    kubeconfig = str(data / "cluster" / "kubeconfig")
    where = ("--data", str(data / "node"), "--kubeconfig", kubeconfig)
    return _start("process-node", "--name", NODE, *where)


async def _measure(data: Path) -> tuple[float, float]:
    config = ClusterConfig.load(data / "cluster" / "kubeconfig")
    async with Client(config) as client:
        seen: dict[str, float] = {}
        watching = asyncio.ensure_future(_watch(client, seen))
        took = [await _one(client, f"one-{number}", seen) for number in range(PODS)]
        began = time.perf_counter()
        names = [f"many-{number}" for number in range(TOGETHER)]
        await asyncio.gather(*(_create(client, name) for name in names))
        for name in names:
            await _running(name, seen)
        rate = TOGETHER / (time.perf_counter() - began)
        watching.cancel()
    return statistics.median(took) * 1000, rate


async def _watch(client: Client, seen: dict[str, float]) -> None:
    version = (await client.list(POD_RUNS)).resource_version
    async with aclosing(client.watch(POD_RUNS, resource_version=version)) as events:
        async for event in events:
            pod = event.object
            if pod is not None and pod.status.phase == "Running":
                seen.setdefault(pod.metadata.name, time.perf_counter())


async def _one(client: Client, name: str, seen: dict[str, float]) -> float:
    await _create(client, name)
    began = time.perf_counter()
    await _running(name, seen)
    await client.delete(POD_RUNS, name, "default", grace_seconds=0)
    return seen[name] - began


async def _create(client: Client, name: str) -> None:
    container = {"name": "main", "image": "none", "command": SLEEP}
    spec = {"nodeName": NODE, "containers": [container]}
    await client.create(POD_RUNS, {"metadata": {"name": name}, "spec": spec}, "default")


async def _running(name: str, seen: dict[str, float]) -> None:
    while name not in seen:  # noqa: ASYNC110  the watch fills it in
        await asyncio.sleep(0.001)
