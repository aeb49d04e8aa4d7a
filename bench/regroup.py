"""A job of 1,024 launchers, without ranks, loses a rank: from the report to the next world."""

from __future__ import annotations

import asyncio
import contextlib
import json
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.support.apiserver import ApiServer

from bench.figure import Figure
from bench.support.cluster import add_nodes, each
from lockstep.api.core import CONFIG_MAPS, LEASES, PODS
from lockstep.api.rendezvous import WORLD_KEY
from lockstep.api.training import TRAINING_JOBS
from lockstep.jobs.main import add_jobs
from lockstep.kube.client import Client
from lockstep.kube.crds import ensure_crds
from lockstep.runtime.manager import Manager

SLOW = True
COUNT, NODES_COUNT, LIMIT, PATIENCE = 1024, 16, 5.0, 500.0
JOB = "large"

Json = dict[str, Any]


def run() -> list[Figure]:
    with tempfile.TemporaryDirectory() as directory:
        server = ApiServer(Path(directory) / "cluster").start()
        try:
            seconds = asyncio.run(_play(server))
        finally:
            server.kill()
    name = f"training: regroup of {COUNT:,} launchers without ranks"
    return [
        Figure(name, seconds, "s", "lower", LIMIT).beside("DLRover's poll alone", 5.0, "its source")
    ]


async def _play(server: ApiServer) -> float:
    async with server.client() as client, server.client() as own:
        await ensure_crds(client)
        manager = Manager(own, name="controllers", leader_elect=False)
        add_jobs(manager)
        task = asyncio.create_task(manager.run(lambda _: None))
        try:
            await add_nodes(client, NODES_COUNT)
            await client.create(TRAINING_JOBS, _job())
            launchers = Launchers(client, await _running_pods(client))
            await launchers.gather(1)
            start = time.perf_counter()
            ended = {"rank": 3, "at": time.time(), "signal": 9}
            await launchers.report(f"{JOB}-worker-3", 1, "Failed", ended=ended)
            await launchers.gather(2)
            return time.perf_counter() - start
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


def _job() -> Json:
    container = {"name": "main", "image": "none", "command": ["python", "train.py"]}
    role = {"name": "worker", "replicas": COUNT, "template": {"spec": {"containers": [container]}}}
    spec = {"framework": "pytorch", "roles": [role]}
    return {"metadata": {"name": JOB, "namespace": "default"}, "spec": spec}


async def _running_pods(client: Client) -> dict[str, str]:
    """Bind all pods and let them run, as scheduler and nodes do; return their uids by name."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        pods = (await client.list(PODS, "default")).items
        if len(pods) == COUNT:
            break
        await asyncio.sleep(0.2)
    numbers = {pod.metadata.name: i for i, pod in enumerate(pods)}
    uids = {pod.metadata.name: pod.metadata.uid for pod in pods}
    ready = [{"type": "Ready", "status": "True"}]
    status = {"status": {"phase": "Running", "conditions": ready}}

    async def start(name: str) -> None:
        node = f"node-{numbers[name] % NODES_COUNT}"
        await client.bind("default", name, node, uid=uids[name])
        await client.patch(PODS, name, status, "default", subresource="status")

    await each(numbers, start)
    return uids


class Launchers:
    """All launchers of the job in one process: one reads the world for all, each reports alone."""

    def __init__(self, client: Client, uids: dict[str, str]) -> None:
        self._client, self._uids = client, uids

    async def gather(self, generation: int) -> None:
        """See *generation* gather, report from each launcher, and return once it runs."""
        await self._until(generation, "Gather")
        await each(self._uids, lambda name: self.report(name, generation, "Ready"))
        await self._until(generation, "Run")
        if generation == 1:
            await each(self._uids, lambda name: self.report(name, generation, "Running"))

    async def report(self, name: str, generation: int, state: str, **more: Any) -> None:
        """Report as a launcher does."""
        said = {"uid": self._uids[name], "generation": generation, "state": state, **more}
        body = {
            "metadata": {"annotations": {"lockstep.dev/report": json.dumps(said)}},
            "spec": {"holderIdentity": self._uids[name]},
        }
        await self._client.patch(LEASES, name, body, "default")

    async def _until(self, generation: int, phase: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            there = await self._client.get(CONFIG_MAPS, f"{JOB}-world", "default")
            world = json.loads(there.data[WORLD_KEY])
            if (world["generation"], world["phase"]) == (generation, phase):
                return
            await asyncio.sleep(0.02)
        raise AssertionError(f"no {phase} of generation {generation}: {world}")
