"""The scheduler, ended at each of its calls: gangs whole or not there, no device held twice."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.support import parts
from tests.support.apiserver import ApiServer
from tests.support.crashing import Arena, Ground, Scenario, Stage
from tests.support.faults import Break, Fault
from tests.support.lives import in_process
from tests.support.scheduler import add_gang, add_nodes, pod_body

from lockstep.api.claims import DEVICE_CLASSES, DRIVER, RESOURCE_CLAIMS, RESOURCE_SLICES
from lockstep.api.core import PODS
from lockstep.api.gang import GANGS
from lockstep.api.names import GANG_GROUP_LABEL, GPUS_ANNOTATION
from lockstep.api.queue import QUEUES
from lockstep.devices.core.slices import class_of
from lockstep.kube.client import Client
from lockstep.kube.transport import Request


async def add_leaves(client: Client) -> None:
    for leaf in "xy":
        names = [f"{leaf}{i}" for i in range(2)]
        await add_nodes(client, names, spine="s", leaf=leaf)


async def member(client: Client, gang: str, name: str, group: str, gpus: int) -> None:
    body = pod_body(name, gpus=gpus, gang=gang)
    body["metadata"]["labels"][GANG_GROUP_LABEL] = group
    await client.create(PODS, body)


async def outcome(stage: Stage) -> object:
    """Return how far everything is; which of the equal nodes it stands on is left out."""
    pods = (await stage.client.list(PODS, "default")).items
    gangs = (await stage.client.list(GANGS)).items
    queues = (await stage.client.list(QUEUES)).items
    return {
        "pods": {
            p.metadata.name: (bool(p.spec.node_name), len(_gpus(p.metadata.annotations)))
            for p in pods
        },
        "gangs": {
            g.metadata.name: (
                (g.status.phase, g.status.reason, g.status.members, g.status.bound),
                [(group.name, group.bound) for group in g.status.groups],
                "leaf" in g.status.domain,
                bool(g.status.placed_at),
            )
            for g in gangs
        },
        "queues": {q.metadata.name: (q.status.pending, q.status.running) for q in queues},
        "used": {q.metadata.name: dict(q.status.used) for q in queues},
        "made": dict(stage.audit.made),
        "claims": await _claims(stage.client),
    }


async def _claims(client: Client) -> object:
    """Return who uses each claim, and how many devices there are in all of them."""
    found = (await client.list(RESOURCE_CLAIMS, "default")).items
    devices = [
        one.device
        for claim in found
        if claim.status.allocation is not None
        for one in claim.status.allocation.devices.results
    ]
    assert len(set(devices)) == len(devices), "a device is in two claims"
    users = {
        claim.metadata.name: [user.name for user in claim.status.reserved_for] for claim in found
    }
    return users, len(devices)


def _gpus(annotations: dict[str, str]) -> list[str]:
    held = annotations.get(GPUS_ANNOTATION, "")
    return held.split(",") if held else []


def placed(stage: Stage, *gangs: str) -> Callable[[], Awaitable[bool]]:
    async def look() -> bool:
        found = {g.metadata.name: g.status.phase for g in (await stage.client.list(GANGS)).items}
        return all(found[name] == "Placed" for name in gangs)

    return look


async def everything_at_once(stage: Stage) -> None:
    """A queue, a gang of two groups, pods of their own, and a gang that has no place."""
    client = stage.client
    await add_leaves(client)
    await client.create(QUEUES, {"metadata": {"name": "team"}, "spec": {}})
    stage.start()
    groups = [{"name": "trainer", "min": 3}, {"name": "server", "min": 2}]
    spec = {"groups": groups, "topology": {"required": "leaf"}, "queue": "team"}
    await client.create(GANGS, {"metadata": {"name": "g", "namespace": "default"}, "spec": spec})
    await asyncio.gather(
        *(member(client, "g", f"g-trainer-{i}", "trainer", 4) for i in range(3)),
        *(member(client, "g", f"g-server-{i}", "server", 0) for i in range(2)),
        *(client.create(PODS, pod_body(f"single-{i}", gpus=2)) for i in range(3)),
        add_gang(client, "large", 3, gpus=8, topology={"required": "leaf"}),
    )
    await stage.until(placed(stage, "g"), "the gang is placed")


async def growth(stage: Stage) -> None:
    """An elastic gang that runs with two members and gets a third and a fourth."""
    client = stage.client
    await add_leaves(client)
    spec = {"groups": [{"name": "worker", "min": 2, "desired": 4}]}
    await client.create(GANGS, {"metadata": {"name": "e", "namespace": "default"}, "spec": spec})
    for i in range(2):
        await member(client, "e", f"e-{i}", "worker", 8)
    stage.start()
    await stage.until(placed(stage, "e"), "the gang is placed")
    for i in range(2, 4):
        await member(client, "e", f"e-{i}", "worker", 8)


async def scarcity(stage: Stage) -> None:
    """Twice as many pods as there is room for: what one is thought to have lost, another takes."""
    await add_nodes(stage.client, ["x0", "x1"], spine="s", leaf="x")
    for i in range(4):
        await stage.client.create(PODS, pod_body(f"single-{i}", gpus=8))
    stage.start()

    async def full() -> bool:
        return (
            sum(bool(p.spec.node_name) for p in (await stage.client.list(PODS, "default")).items)
            >= 2
        )

    await stage.until(full, "the nodes are full")


async def no_way_forward(stage: Stage) -> None:
    """A gang of which somebody ended after two of three bindings; the third has no place."""
    client = stage.client
    await add_nodes(client, ["x0", "x1"], spine="s", leaf="x")
    await add_gang(client, "half", 3, gpus=8)
    for i in range(2):
        pod = await client.get(PODS, f"half-{i}", "default")
        held = {GPUS_ANNOTATION: "0,1,2,3,4,5,6,7"}
        await client.bind("default", f"half-{i}", f"x{i}", uid=pod.metadata.uid, annotations=held)
    stage.start()

    async def given_back() -> bool:
        bound = [p for p in (await client.list(PODS, "default")).items if p.spec.node_name]
        for pod in bound:
            if pod.metadata.deletion_timestamp is not None:  # as its node would
                await client.delete(PODS, pod.metadata.name, "default", grace_seconds=0)
        return not bound

    await stage.until(given_back, "the nodes are given back")
    await client.create(PODS, pod_body("single", gpus=8))


async def claims(stage: Stage) -> None:
    """Three pods that claim a card each, of two."""
    client = stage.client
    await add_nodes(client, ["x0"], gpus=2, spine="s", leaf="x")
    await client.create(DEVICE_CLASSES, class_of())
    devices = [{"name": f"gpu-{i}", "attributes": {"index": {"int": i}}} for i in range(2)]
    pool = {"name": "x0", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "nodeName": "x0", "pool": pool, "devices": devices}
    await client.create(RESOURCE_SLICES, {"metadata": {"name": "x0"}, "spec": spec})
    for name in ("p0", "p1", "p2"):
        request = {"name": "r", "exactly": {"deviceClassName": DRIVER}}
        meta = {"name": name, "namespace": "default"}
        asked = {"metadata": meta, "spec": {"devices": {"requests": [request]}}}
        await client.create(RESOURCE_CLAIMS, asked)
        named = [{"name": "card", "resourceClaimName": name}]
        await client.create(PODS, pod_body(name, gpus=0, resourceClaims=named))
    stage.start()

    async def full() -> bool:
        pods = (await client.list(PODS, "default")).items
        return sum(bool(pod.spec.node_name) for pod in pods) == 2

    await stage.until(full, "both cards are given")


SCENARIOS: dict[str, Callable[[Stage], Awaitable[Any]]] = {
    "everything at once": everything_at_once,
    "an elastic gang grows": growth,
    "there is too little room": scarcity,
    "a gang has to be rolled back": no_way_forward,
    "pods claim cards": claims,
}


@pytest.mark.parametrize("story", SCENARIOS)
async def test_it_ends_the_same_wherever_the_scheduler_ends(arena: Arena, story: str) -> None:
    await arena.endures(Scenario(in_process(parts.scheduler), SCENARIOS[story], outcome))


@pytest.mark.real_sample()
@pytest.mark.parametrize("story", SCENARIOS)
async def test_it_ends_the_same_in_any_weather(arena: Arena, story: str) -> None:
    await arena.weathers(
        Scenario(in_process(parts.scheduler), SCENARIOS[story], outcome), range(arena.seeds)
    )


async def test_what_nobody_expects_at_one_binding_concerns_no_other(server: ApiServer) -> None:
    scenario = Scenario(in_process(parts.scheduler), scarcity, outcome)
    bindings = itertools.count()

    def plan(_number: int, request: Request) -> Fault | None:
        return Break.ODD if request.target.endswith("/binding") and not next(bindings) else None

    async with Ground.laid(server, scenario) as ground, ground.stage(plan) as stage:
        await scarcity(stage)
        await stage.quiet()
        seen = await outcome(stage)
        assert isinstance(seen, dict)
        assert seen["pods"] == {
            "single-0": (True, 8),
            "single-1": (True, 8),
            "single-2": (False, 0),
            "single-3": (False, 0),
        }
        assert len(stage.lives) == 1
        stage.audit.check()
