"""A real control plane for benchmarks, and what is put into it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
from collections.abc import Awaitable, Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from tests.support import kube_binaries
from tests.support.kube_apiserver import KubeApiServer
from tools.kube import build

from bench.figure import NotMeasured
from lockstep.api.core import NODES, PODS
from lockstep.api.gang import GANGS
from lockstep.api.names import GANG_LABEL, SCHEDULER_NAME
from lockstep.kube.client import Client

NODES_A_LEAF = 16
LEAVES_A_SPINE = 8
GPUS_A_NODE = 8
PARALLEL = 64

Json = dict[str, Any]


def require(*programs: str) -> None:
    """See to it that the real programs are there, and build them where they are not.

    Raises:
        NotMeasured: when they cannot be built here.
    """
    if _missing(programs):
        build.main()
    if missing := _missing(programs):
        raise NotMeasured(f"no {', '.join(missing)}: see `make kube`")


def _missing(programs: Iterable[str]) -> list[str]:
    return [name for name in programs if kube_binaries.find(name) is None]


def cpu_seconds(pid: int) -> float:
    """Return the CPU time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def real_cluster() -> Iterator[KubeApiServer]:
    """A fresh etcd (without fsync) and kube-apiserver (without priority and fairness)."""
    with tempfile.TemporaryDirectory() as directory:
        server = KubeApiServer(Path(directory))
        try:
            yield server.start()
        finally:
            server.kill()


def node(number: int) -> Json:
    """A ready node of 96 CPUs and 8 GPUs, 16 a leaf and 8 leaves a spine."""
    leaf = number // NODES_A_LEAF
    name = f"node-{number}"
    offer = {"cpu": "96", "memory": "1Ti", "pods": "110", "nvidia.com/gpu": str(GPUS_A_NODE)}
    labels = {
        "kubernetes.io/hostname": name,
        "leaf": f"leaf-{leaf}",
        "spine": f"spine-{leaf // LEAVES_A_SPINE}",
    }
    ready = {"type": "Ready", "status": "True", "reason": "Ready"}
    status = {"capacity": offer, "allocatable": offer, "conditions": [ready]}
    return {"metadata": {"name": name, "labels": labels}, "status": status}


def pod(name: str, *, scheduler: str = SCHEDULER_NAME, gang: str = "", on: str = "") -> Json:
    """A pod that asks for a CPU and a GPU."""
    amount = {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "1"}
    container = {"name": "main", "image": "none", "resources": {"requests": amount}}
    container["resources"]["limits"] = {"nvidia.com/gpu": "1"}  # type: ignore[index]
    spec: Json = {"schedulerName": scheduler, "containers": [container]}
    if on:
        spec["nodeName"] = on
    metadata: Json = {"name": name, "namespace": "default"}
    if gang:
        metadata["labels"] = {GANG_LABEL: gang}
    return {"metadata": metadata, "spec": spec}


async def add_nodes(client: Client, count: int) -> None:
    """Create nodes; they are ready at once, as nothing marks them otherwise."""
    await each(range(count), lambda number: client.create(NODES, node(number)))


async def add_pods(client: Client, pods: Iterable[Json]) -> None:
    """Create pods, many at a time."""
    await each(pods, lambda body: client.create(PODS, body))


async def add_gang(client: Client, name: str, members: int, *, tier: str | None = None) -> None:
    """Create a gang of one-GPU pods, its object first."""
    spec: Json = {"minMember": members}
    if tier is not None:
        spec["topology"] = {"required": tier}
    await client.create(GANGS, {"metadata": {"name": name, "namespace": "default"}, "spec": spec})
    await add_pods(client, (pod(f"{name}-{i}", gang=name) for i in range(members)))


async def each(items: Iterable[Any], work: Callable[[Any], Awaitable[object]]) -> None:
    """Do *work* for every item, many at a time."""
    waiting = iter(items)

    async def worker() -> None:
        for item in waiting:
            await work(item)

    await asyncio.gather(*(worker() for _ in range(PARALLEL)))
