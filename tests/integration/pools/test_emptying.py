"""A node whose job has room elsewhere is emptied and given back, where the queue lets jobs move."""

from __future__ import annotations

import contextlib

import pytest
from tests.support.apiserver import ApiServer
from tests.support.pool_parts import lockstep, pool_nodes, submit
from tests.support.waiting import eventually

from lockstep.api.core import PODS
from lockstep.api.gang import GANGS
from lockstep.api.node_pool import NODE_POOLS
from lockstep.api.queue import QUEUES
from lockstep.api.training import TRAINING_JOBS
from lockstep.kube.client import Client
from lockstep.kube.errors import NotFound
from lockstep.nodes.simulated.pools import parse_pool
from lockstep.scheduler.core.defrag.candidates import Stated

PATIENCE = 180.0
POLICY = {"coolDown": "2s"}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make looks frequent and restarts cheap."""
    monkeypatch.setattr("lockstep.pools.controller.EMPTY_SECONDS", 0.5)
    monkeypatch.setattr("lockstep.pools.core.emptying.COSTS", Stated(restart=0.1))


async def on(client: Client, job: str) -> str:
    """Return the node on which the one pod of a job runs; empty where it does not."""
    pods = (await client.list(PODS, "default")).items
    return next(
        (
            pod.spec.node_name
            for pod in pods
            if pod.metadata.labels.get("lockstep.dev/job") == job
            and pod.status.phase == "Running"
            and pod.metadata.deletion_timestamp is None
        ),
        "",
    )


async def remove(client: Client, job: str) -> None:
    """Delete what a job has left behind, as the collector of garbage would."""
    for res in (GANGS, PODS):
        for one in (await client.list(res, "default")).items:
            if one.metadata.name.startswith(job):
                with contextlib.suppress(NotFound):
                    await client.delete(res, one.metadata.name, "default", grace_seconds=0)


async def test_a_node_is_emptied_and_goes_back(any_server: ApiServer) -> None:
    async with lockstep(any_server) as client:
        await client.create(NODE_POOLS, parse_pool("gpu=0..4x8,idle=1s"))
        options = {"simulated": True, "checkpoint": {"interval": "1s"}}
        await submit(client, "first", 1, gpus=6, **options)
        await eventually(lambda: on(client, "first"), PATIENCE, "the first job runs")
        await submit(client, "second", 1, gpus=6, **options)
        await eventually(lambda: on(client, "second"), PATIENCE, "the second job runs")
        await submit(client, "small", 1, gpus=2, **options)
        beside = await eventually(lambda: on(client, "small"), PATIENCE, "the small job runs")
        assert len(await pool_nodes(client, "gpu")) == 2
        large, other = "first", "second"
        if beside != await on(client, large):
            large, other = other, large
        await client.delete(TRAINING_JOBS, large, "default", propagation="Background")
        await client.patch(QUEUES, "default", {"spec": {"defragmentation": POLICY}})

        async def together() -> bool:
            await remove(client, large)
            nodes = [node.metadata.name for node in await pool_nodes(client, "gpu")]
            # Which of both moves is the cheaper depends on how long each has run.
            return [await on(client, "small")] == [await on(client, other)] == nodes

        await eventually(together, PATIENCE, "one job has moved, and its node has gone")
