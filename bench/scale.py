"""Lockstep's scheduler and client beside a real API server with 5,000 nodes and 50,000 pods."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.support.kube_apiserver import KubeApiServer
from tests.support.waiting import eventually_sync

from bench.figure import EARLIER, Figure
from bench.support import etcd, schedulers
from bench.support.binds import BindWatch
from bench.support.cluster import GPUS_A_NODE, Json, node, pod, real_cluster, require
from lockstep.api.core import NODES, PODS
from lockstep.api.names import GPUS_ANNOTATION
from lockstep.kube.client import Patch

NODE_COUNT = 5000
RUNNING = 40_000
LISTED = 50_000
OFFICIAL = 2500
FREE_NODES = 16
"""Nodes whose GPUs nobody has; elsewhere all are taken."""
DEADLINE = 120.0
START_LIMIT, MEMORY_LIMIT, LIST_LIMIT = 10.0, 400.0, 5.0
VOLCANO_RESTART = 8 * 60 + 17.0
"""Seconds, with 4,888 nodes and 140,000 pods, as a user measured (volcano-sh/volcano#5819)."""


def run() -> list[Figure]:
    require("etcd", "kube-apiserver")
    with real_cluster() as server:
        samples = asyncio.run(_samples(server))
        _fill(server, samples)
        restarted = _restart(server)
        etcd.put_all(server.etcd_port, "/registry/pods/default", _pods(samples, RUNNING, LISTED))
        _wait_for_cache(server, LISTED)
        return [*restarted, *_lists(server)]


async def _samples(server: KubeApiServer) -> dict[str, Json]:
    """Make one node and one running pod through the API, and return them as the server has them."""
    async with server.client() as client:
        await client.create(NODES, node(0))
        await client.create(PODS, _training_pod("sample"))
        await client.bind("default", "sample", "node-0", uid="", annotations={GPUS_ANNOTATION: "0"})
        await client.patch(
            PODS, "sample", {"status": _running()}, "default", how=Patch.MERGE, subresource="status"
        )
    paths = {"node": "/api/v1/nodes/node-0", "pod": "/api/v1/namespaces/default/pods/sample"}
    found = {kind: server.request("GET", path).json for kind, path in paths.items()}
    server.request("DELETE", f"{paths['pod']}?gracePeriodSeconds=0")
    server.request("DELETE", paths["node"])
    for obj in found.values():
        del obj["metadata"]["resourceVersion"]
    return found


def _training_pod(name: str) -> Json:
    """A pod with as much in it as those of real jobs have."""
    made = pod(name)
    container = made["spec"]["containers"][0]
    container["env"] = [{"name": f"VARIABLE_{n}", "value": "x" * 24} for n in range(11)]
    made["metadata"]["labels"] = {"app": "training", "team": "research"}
    return made


def _running() -> Json:
    now = "2026-01-01T00:00:00Z"
    kinds = ("PodScheduled", "Initialized", "Ready", "ContainersReady")
    state = {"running": {"startedAt": now}}
    container: Json = {"name": "main", "ready": True, "restartCount": 0, "state": state}
    return {
        "phase": "Running",
        "podIP": "10.0.0.1",
        "startTime": now,
        "conditions": [{"type": t, "status": "True", "lastTransitionTime": now} for t in kinds],
        "containerStatuses": [{**container, "image": "none", "imageID": "none"}],
    }


def _fill(server: KubeApiServer, samples: dict[str, Json]) -> None:
    nodes = (_copy(samples["node"], node(n)["metadata"]) for n in range(NODE_COUNT))
    etcd.put_all(server.etcd_port, "/registry/minions", nodes)
    etcd.put_all(server.etcd_port, "/registry/pods/default", _pods(samples, 0, RUNNING))
    _wait_for_cache(server, RUNNING)


def _wait_for_cache(server: KubeApiServer, pods: int) -> None:
    """Wait until the server has read what was put into etcd."""

    def caught_up() -> bool:
        found = server.request("GET", "/api/v1/pods?limit=1").json
        return bool(found["metadata"].get("remainingItemCount", 0) == pods - 1)

    eventually_sync(caught_up, DEADLINE)


def _pods(samples: dict[str, Json], first: int, end: int) -> Iterator[Json]:
    """Yield running pods, each with a GPU of its own for as long as there are any to give."""
    full = NODE_COUNT - FREE_NODES
    for number in range(first, end):
        where, gpu = f"node-{number // GPUS_A_NODE % full}", number % GPUS_A_NODE
        made = _copy(samples["pod"], {"name": f"running-{number}"})
        made["spec"] = {**made["spec"], "nodeName": where}
        if number < full * GPUS_A_NODE:
            made["metadata"]["annotations"] = {GPUS_ANNOTATION: str(gpu)}
        else:
            made["spec"]["containers"] = [_without_gpu(made["spec"]["containers"][0])]
            made["metadata"]["annotations"] = {}
        yield made


def _copy(sample: Json, metadata: Json) -> Json:
    own = {**sample["metadata"], **metadata, "uid": str(uuid.uuid4())}
    return {**sample, "metadata": own}


def _without_gpu(container: dict[str, Any]) -> dict[str, Any]:
    return {**container, "resources": {"requests": {"cpu": "1"}}}


def _restart(server: KubeApiServer) -> list[Figure]:
    """Start a scheduler where a pod waits that only few nodes can take."""
    asyncio.run(_wait_for_a_node(server))
    with BindWatch(server) as watch:
        began = time.perf_counter()
        with schedulers.lockstep(server.kubeconfig) as process:
            seconds = watch.wait(1, DEADLINE) - began
            now, peak = _memory(process.pid, "VmRSS"), _memory(process.pid, "VmHWM")
    asyncio.run(_check(server))
    of = f"{NODE_COUNT:,} nodes and {RUNNING:,} running pods"
    start = Figure(f"{of}: start to the first bind", seconds, "s", "lower", START_LIMIT)
    return [
        start.beside("Volcano (4,888 nodes, 140,000 pods)", VOLCANO_RESTART, EARLIER),
        Figure(f"{of}: the scheduler's memory", now, "MiB", "lower", MEMORY_LIMIT),
        Figure(f"{of}: its peak", peak, "MiB", "lower", MEMORY_LIMIT),
    ]


async def _wait_for_a_node(server: KubeApiServer) -> None:
    body = pod("late")
    amount = {"nvidia.com/gpu": str(GPUS_A_NODE)}
    body["spec"]["containers"][0]["resources"] = {"limits": amount}
    async with server.client() as client:
        await client.create(PODS, body)


async def _check(server: KubeApiServer) -> None:
    async with server.client() as client:
        late = await client.get(PODS, "late", "default")
        await client.delete(PODS, "late", "default", grace_seconds=0)
    number = int(late.spec.node_name.removeprefix("node-"))
    assert number >= NODE_COUNT - FREE_NODES, late.spec.node_name


def _memory(pid: int, what: str) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith(what))
    return int(line.split()[1]) / 1024


def _lists(server: KubeApiServer) -> list[Figure]:
    wall, cpu, _, count = _list(server, "lockstep")
    assert count == LISTED, count
    _, official, _, listed = _list(server, "official", OFFICIAL)
    scaled = official * LISTED / listed
    of = f"list and cache {LISTED:,} pods"
    peer = f"official client (CPU of {OFFICIAL:,} pods, times {LISTED // OFFICIAL})"
    return [
        Figure(of, wall, "s", "lower", LIST_LIMIT),
        Figure(f"{of}: CPU", cpu, "s", "lower", LIST_LIMIT).beside(peer, scaled),
    ]


def _list(server: KubeApiServer, who: str, *limit: int) -> tuple[float, float, float, int]:
    module = [sys.executable, "-m", "bench.support.list_pods", who, str(server.kubeconfig)]
    done = subprocess.run(
        [*module, *map(str, limit)], stdout=subprocess.PIPE, text=True, check=True
    )
    wall, cpu, peak, count = map(float, done.stdout.split())
    return wall, cpu, peak, int(count)
