"""What a client costs: decoding a long list, following events, and requests a CPU second."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

from bench.figure import Figure
from lockstep.api.core import PODS, Pod
from lockstep.kube.client import Client
from lockstep.kube.codec import decode_event, decode_page
from lockstep.kube.config import ClusterConfig
from lockstep.kube.follower import Follower

LISTED = 5000
EVENTS = 20_000
REQUESTS = 4000
PARALLEL = 64
LIST_LIMIT = 0.2
EVENT_LIMIT = 50_000.0


def run() -> list[Figure]:
    body = _list_body(LISTED)
    ours = _seconds(lambda: decode_page(Pod, body))
    plain = _seconds(lambda: json.loads(body))
    rate, peer = _requests()
    return [
        Figure(
            f"decode a list of {LISTED} pods",
            ours,
            "s",
            "lower",
            LIST_LIMIT,
            peer=plain,
            peer_name="json.loads",
            source="same run",
        ),
        Figure("pod events into the cache", _events(), "/s", "higher", EVENT_LIMIT),
        Figure(
            "patches a CPU second",
            rate,
            "/s",
            "higher",
            peer=peer,
            peer_name="lightkube",
            source="same run",
        ),
    ]


def _seconds(work: Callable[[], Any]) -> float:
    best = float("inf")
    for _ in range(3):
        began = time.process_time()
        work()
        best = min(best, time.process_time() - began)
    return best


def _pod(number: int, version: int) -> dict[str, Any]:
    """A pod of a training job as servers return it, with what no view reads."""
    env = [{"name": f"VARIABLE_{n}", "value": "x" * 24} for n in range(11)]
    managed: list[dict[str, Any]] = [
        {"manager": m, "operation": "Update", "fieldsV1": {f"f:field{n}": {} for n in range(60)}}
        for m in ("controllers", "node")
    ]
    resources = {"limits": {"nvidia.com/gpu": "8", "cpu": "96", "memory": "1Ti"}}
    conditions = [
        {"type": t, "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        for t in ("PodScheduled", "Initialized", "Ready", "ContainersReady")
    ]
    return {
        "metadata": {
            "name": f"job-worker-{number}",
            "namespace": "research",
            "uid": f"00000000-0000-0000-0000-{number:012d}",
            "resourceVersion": str(version),
            "labels": {"lockstep.dev/gang": "job", "lockstep.dev/index": str(number)},
            "managedFields": managed,
        },
        "spec": {
            "nodeName": f"node-{number % 500}",
            "containers": [{"name": "main", "image": "i", "env": env, "resources": resources}],
            "volumes": [{"name": f"v{n}", "emptyDir": {}} for n in range(4)],
        },
        "status": {"phase": "Running", "podIP": "10.0.0.1", "conditions": conditions},
    }


def _list_body(count: int) -> bytes:
    items = [_pod(n, n + 1) for n in range(count)]
    return json.dumps({"metadata": {"resourceVersion": str(count)}, "items": items}).encode()


def _events() -> float:
    lines = [
        json.dumps({"type": "MODIFIED", "object": _pod(n % LISTED, n + 1)}).encode()
        for n in range(EVENTS)
    ]
    follower: Follower[Pod] = Follower({"node": lambda pod: [pod.spec.node_name]})
    follower.listed([], "0")
    began = time.process_time()
    for line in lines:
        event = decode_event(Pod, line)
        follower.event(event)  # type: ignore[arg-type]
    taken = time.process_time() - began
    assert len(follower.cache) == LISTED
    return EVENTS / taken


def _requests() -> tuple[float, float]:
    server = subprocess.Popen(
        [sys.executable, "-m", "bench.support.stub_server"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    try:
        url = f"http://127.0.0.1:{server.stdout.readline().strip()}"
        return asyncio.run(_ours(url)), asyncio.run(_lightkube(url))
    finally:
        server.kill()
        server.wait()


PATCH = {"status": {"phase": "Running", "podIP": "10.0.0.1"}}


async def _ours(url: str) -> float:
    async with Client(ClusterConfig(server=url)) as client:
        return await _storm(
            lambda: client.patch(PODS, "p", PATCH, "default", subresource="status"), REQUESTS
        )


async def _lightkube(url: str) -> float:
    from lightkube import AsyncClient, KubeConfig
    from lightkube.config.models import Cluster, User
    from lightkube.resources.core_v1 import PodStatus
    from lightkube.types import PatchType

    config = KubeConfig.from_one(
        cluster=Cluster(server=url),
        user=User(token="none"),  # noqa: S106 - lightkube insists on one
        context_name="x",
    )
    client = AsyncClient(config)
    return await _storm(
        lambda: client.patch(
            PodStatus, "p", PATCH, namespace="default", patch_type=PatchType.MERGE
        ),
        REQUESTS // 8,
    )


async def _storm(request: Callable[[], Awaitable[Any]], count: int) -> float:
    """Send *count* requests, many at a time, and return how many a second of CPU."""
    await request()
    numbers = iter(range(count))

    async def worker() -> None:
        for _ in numbers:
            await request()

    began = time.process_time()
    await asyncio.gather(*(worker() for _ in range(PARALLEL)))
    return count / (time.process_time() - began)
