"""The simulator and the running scheduler decide alike where many have to make room.

Queues claim what is guaranteed to them, the more important evict the less important, and the
victims, whose jobs make their pods again, claim and evict in turn.
"""

from __future__ import annotations

import random
from contextlib import contextmanager

import pytest
from tests.support.agreement import (
    AGREED,
    Places,
    agreement,
    real,
    simulated,
)
from tests.support.apiserver import ApiServer
from tests.support.jobs import role
from tests.support.scheduler import PartProcess
from tests.support.waiting import eventually
from tests.support.witness import witnessed

from lockstep.api.core import PODS, PRIORITY_CLASSES
from lockstep.api.queue import QUEUES
from lockstep.api.training import TRAINING_JOBS
from lockstep.kube.client import Client

pytestmark = [pytest.mark.soak, pytest.mark.timeout(600)]
JOBS, PHASES = 14, 3
GUARANTEED = {"a": 0, "b": 16, "c": 24}
PRIORITIES = {"low": 10, "high": 100}


async def furnish(client: Client) -> None:
    for name, value in PRIORITIES.items():
        await client.create(PRIORITY_CLASSES, {"metadata": {"name": name}, "value": value})
    for name, gpus in GUARANTEED.items():
        spec = {"guaranteed": {"nvidia.com/gpu": gpus}} if gpus else {}
        await client.create(QUEUES, {"metadata": {"name": name}, "spec": spec})


async def submit(client: Client, rng: random.Random, first: int) -> int:
    """Create jobs, the later ones more important; return how many pods they will have."""
    pods = 0
    for number in range(first, first + JOBS):
        replicas = rng.choice([1, 2, 4])
        workers = role(replicas=replicas, gpus=rng.choice([2, 4, 8]))
        spec = {"framework": "plain", "roles": [workers], "queue": rng.choice("abc")}
        spec["simulated"] = True
        if priority := rng.choice(["low", "low", "high"] if first else ["", "low"]):
            spec["priorityClassName"] = priority
        meta = {"name": f"job{number}", "namespace": "default"}
        await client.create(TRAINING_JOBS, {"metadata": meta, "spec": spec})
        pods += replicas
    return pods


@contextmanager
def cluster(server: ApiServer):
    """Run everything but the scheduler, which is returned: it starts when the input is there."""
    configs = server.data / "kubeconfigs"
    options = ("8x8,nodes-per-leaf=4,leaves-per-spine=2",)
    nodes = configs / "simulate-nodes.kubeconfig"
    parts = (
        PartProcess(nodes, options=options, part="simulate-nodes"),
        PartProcess(configs / "controllers.kubeconfig", part="controllers"),
    )
    scheduler = PartProcess(configs / "scheduler.kubeconfig")
    try:
        for part in parts:
            part.start()
        yield scheduler
    finally:
        for part in (scheduler, *parts):
            part.kill()


@pytest.mark.parametrize("seed", range(1, 9))
async def test_evictions_and_what_follows_from_them_are_alike(server, tmp_path, seed):
    rng = random.Random(seed)  # noqa: S311 - a draw, not a secret
    with cluster(server) as scheduler:
        async with server.client() as client, witnessed(client):
            await furnish(client)
            wanted = 0
            for phase in range(PHASES):
                wanted += await submit(client, rng, phase * JOBS)

                async def made(number: int = wanted) -> bool:
                    listing = await client.list(PODS, label_selector="lockstep.dev/job")
                    return len(listing.items) == number

                await eventually(made)
                expected = simulated(server, tmp_path)
                scheduler.start()
                await eventually(lambda e=expected: alike(client, e), 60.0, "the same places")
                scheduler.kill()
                await eventually(made)


async def alike(client: Client, expected: Places) -> bool:
    """Return whether the pods stand as expected."""
    return agreement(expected, await real(client)) >= AGREED
