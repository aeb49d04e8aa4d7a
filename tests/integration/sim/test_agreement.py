"""The simulator and the running scheduler decide alike: a snapshot is the common input."""

from __future__ import annotations

import random

from tests.support.agreement import AGREED, Places, agreement, real, simulated
from tests.support.jobs import role
from tests.support.scheduler import PartProcess, pod_body
from tests.support.waiting import eventually

from lockstep.api.core import PODS
from lockstep.api.gang import GANGS
from lockstep.api.training import TRAINING_JOBS
from lockstep.kube.client import Client

GANG_COUNT, JOB_COUNT = 60, 6
LEAVING = 8


async def add_gangs(client: Client, rng: random.Random) -> None:
    """Create gangs of many shapes, each with its pods, named as a group's members are."""
    for number in range(GANG_COUNT):
        name, members = f"g{number}", rng.choice([1, 1, 2, 3, 4, 8])
        gpus, least = rng.choice([1, 2, 3, 4, 8]), rng.choice([members, members, 1])
        group = {"name": "w", "min": least, "desired": members}
        wish = rng.choice([{}, {"topology": {"required": "leaf"}}, {"strategy": "Spread"}])
        meta = {"name": name, "namespace": "default"}
        await client.create(GANGS, {"metadata": meta, "spec": {"groups": [group], **wish}})
        for index in range(members):
            body = pod_body(f"{name}-w-{index}", gpus=gpus, gang=name)
            body["metadata"]["labels"]["lockstep.dev/gang-group"] = "w"
            await client.create(PODS, body)


async def add_jobs(client: Client, rng: random.Random) -> int:
    """Create training jobs; return how many pods they will have."""
    pods = 0
    for number in range(JOB_COUNT):
        replicas = rng.choice([1, 2, 4])
        workers = role(replicas=replicas, gpus=rng.choice([2, 8]))
        meta = {"name": f"job{number}", "namespace": "default"}
        spec = {"framework": "plain", "roles": [workers], "simulated": True}
        await client.create(TRAINING_JOBS, {"metadata": meta, "spec": spec})
        pods += replicas
    return pods


async def test_a_backlog_and_what_departures_let_in_are_placed_alike(server, tmp_path):
    rng = random.Random(7)  # noqa: S311 - a draw, not a secret
    configs = server.data / "kubeconfigs"
    scheduler = PartProcess(configs / "scheduler.kubeconfig")
    nodes = PartProcess(
        configs / "simulate-nodes.kubeconfig",
        options=("24x8,nodes-per-leaf=4,leaves-per-spine=3",),
        part="simulate-nodes",
    )
    jobs = PartProcess(configs / "controllers.kubeconfig", part="controllers")
    try:
        nodes.start()
        jobs.start()
        async with server.client() as client:
            await add_gangs(client, rng)
            wanted = await add_jobs(client, rng)

            async def made() -> bool:
                listing = await client.list(PODS, label_selector="lockstep.dev/job")
                return len(listing.items) == wanted

            await eventually(made)
            for departures in (0, LEAVING):
                placed = sorted(await real(client))
                for gang in sorted({p.split("-")[0] for p in placed if p[0] == "g"})[:departures]:
                    await leave(client, gang)
                expected = simulated(server, tmp_path)
                scheduler.start()
                await eventually(lambda expected=expected: holds(client, len(expected)))
                found = await real(client)
                scheduler.kill()
                assert agreement(expected, found) >= AGREED, differences(expected, found)
                assert len(expected) > len(placed) - 8 * departures
    finally:
        for part in (scheduler, nodes, jobs):
            part.kill()


async def leave(client: Client, gang: str) -> None:
    """Take a gang away, with its pods."""
    await client.delete(GANGS, gang, "default")
    listing = await client.list(PODS, "default", label_selector=f"lockstep.dev/gang={gang}")
    for pod in listing.items:
        await client.delete(PODS, pod.metadata.name, "default", grace_seconds=0)


async def holds(client: Client, pods: int) -> bool:
    """Say whether so many pods have nodes."""
    return len(await real(client)) >= pods


def differences(expected: Places, found: Places) -> list[tuple[str, object, object]]:
    """Return the pods placed differently."""
    return [
        (pod, expected.get(pod), found.get(pod))
        for pod in sorted({*expected, *found})
        if expected.get(pod) != found.get(pod)
    ]
