"""The scheduler as a process against each API server."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator

import pytest
from tests.support.apiserver import ApiServer
from tests.support.scheduler import PartProcess, add_gang, add_nodes, nodes_of, pod_body
from tests.support.waiting import eventually, stretched

from lockstep.api.core import EVENTS, NODES, PODS
from lockstep.api.gang import GANGS, Gang
from lockstep.kube.client import Client


@pytest.fixture
def scheduler(any_server: ApiServer) -> Iterator[PartProcess]:
    running = PartProcess(any_server.data / "kubeconfigs" / "scheduler.kubeconfig").start()
    yield running
    running.kill()


@pytest.fixture
async def client(any_server: ApiServer) -> AsyncIterator[Client]:
    async with any_server.client() as one:
        yield one


async def gang(client: Client, name: str) -> Gang:
    return await client.get(GANGS, name, "default")


async def phase_is(client: Client, name: str, phase: str) -> bool:
    return (await gang(client, name)).status.phase == phase


async def test_a_gang_is_placed_under_its_leaf_others_state_why(scheduler, client):
    await add_nodes(client, ["a1", "a2"], spine="s", leaf="a")
    await add_nodes(client, ["b1", "b2", "b3"], spine="s", leaf="b")
    await add_gang(client, "fits", 2, topology={"required": "leaf"})
    await eventually(lambda: phase_is(client, "fits", "Placed"))
    assert await nodes_of(client, "fits") == {"fits-0": "a1", "fits-1": "a2"}
    placed = await gang(client, "fits")
    assert placed.status.domain == {"spine": "s", "leaf": "a"}
    assert placed.status.placed_at
    pod = await client.get(PODS, "fits-0", "default")
    assert pod.metadata.annotations["lockstep.dev/gpus"] == "0,1,2,3,4,5,6,7"

    await add_gang(client, "waits", 4, topology={"required": "leaf"})

    # While only some of its pods are there it waits for the others.
    async def explained() -> bool:
        return (await gang(client, "waits")).status.reason == "NotEnoughRoom"

    await eventually(explained)
    waiting = await gang(client, "waits")
    assert waiting.status.position == 1
    assert "b (s), has room for 3 of 4 now: 1 pod (8 GPUs) short" in waiting.status.message

    async def pod_says_so() -> bool:
        found = await client.get(PODS, "waits-3", "default")
        return any(
            c.type == "PodScheduled" and c.reason == "Unschedulable" and "short" in c.message
            for c in found.status.conditions
        )

    await eventually(pod_says_so)

    async def event_says_so() -> bool:
        events = (await client.list(EVENTS, "default")).items
        return any(e.reason == "FailedScheduling" and "short" in e.message for e in events)

    await eventually(event_says_so)
    await add_nodes(client, ["b4"], spine="s", leaf="b")
    await eventually(lambda: phase_is(client, "waits", "Placed"))
    shown = (await gang(client, "waits")).status
    assert (shown.reason, shown.message, shown.position) == ("", "", None)


async def test_what_frees_room_lets_the_next_one_in(scheduler, client):
    await add_nodes(client, ["n1"])
    await client.create(PODS, pod_body("first"))
    await client.create(PODS, pod_body("second"))

    async def bound(name: str) -> bool:
        return bool((await client.get(PODS, name, "default")).spec.node_name)

    await eventually(lambda: bound("first"))
    assert not await bound("second")
    done = {"status": {"phase": "Succeeded"}}
    await client.patch(PODS, "first", done, "default", subresource="status")
    await eventually(lambda: bound("second"))


async def test_a_pod_whose_gang_comes_later_waits_for_it(scheduler, client):
    await add_nodes(client, ["n1"])
    await client.create(PODS, pod_body("p", gang="late"))

    async def says_so() -> bool:
        found = await client.get(PODS, "p", "default")
        return any("Gang default/late does not exist" in c.message for c in found.status.conditions)

    await eventually(says_so)
    meta = {"name": "late", "namespace": "default"}
    await client.create(GANGS, {"metadata": meta, "spec": {"minMember": 1}})
    await eventually(lambda: phase_is(client, "late", "Placed"))


async def killed_in_mid_bind(client: Client, scheduler: PartProcess, members: int) -> int:
    """Kill the scheduler at the first binding of a large gang; return how many have nodes then."""
    await add_gang(client, "big", members, gpus=1, topology={"required": "spine"})
    listed = await client.list(PODS, "default")
    bound = {pod.metadata.name for pod in listed.items if pod.spec.node_name}
    async with asyncio.timeout(stretched(90.0)):
        async for event in client.watch(PODS, "default", resource_version=listed.resource_version):
            if bound or event.object.spec.node_name:
                break
    scheduler.kill()
    return len(await nodes_of(client, "big"))


async def test_killed_while_binding_it_completes_the_gang_after_restart(scheduler, client):
    for spine in "ab":
        names = [f"{spine}{i}" for i in range(40)]
        await add_nodes(client, names, spine=spine, leaf=f"leaf-{spine}")
    members = 300
    got = await killed_in_mid_bind(client, scheduler, members)
    scheduler.start()

    async def whole() -> bool:
        return len(await nodes_of(client, "big")) == members

    await eventually(whole, 90.0)
    assert 0 < got < members
    where = await nodes_of(client, "big")
    assert len({node[0] for node in where.values()}) == 1, "one spine holds all of them"
    pods = (await client.list(PODS, "default")).items
    held = Counter(
        (p.spec.node_name, gpu)
        for p in pods
        for gpu in p.metadata.annotations["lockstep.dev/gpus"].split(",")
    )
    assert len(held) == members, "no device is held twice"
    await eventually(lambda: phase_is(client, "big", "Placed"))


async def test_killed_while_binding_with_lost_place_it_frees_nodes(scheduler, client):
    await add_nodes(client, [f"n{i}" for i in range(40)], spine="a", leaf="a")
    scheduler.kill()
    members = 3
    await add_gang(client, "half", members, topology={"required": "leaf"})
    pod = await client.get(PODS, "half-0", "default")
    await client.bind("default", "half-0", "n0", uid=pod.metadata.uid)
    for i in range(1, 40):
        await client.delete(NODES, f"n{i}")
    scheduler.start()

    async def nothing_half_placed() -> bool:
        return not await nodes_of(client, "half") or await being_deleted()

    async def being_deleted() -> bool:
        pods = (await client.list(PODS, "default")).items
        return all(p.metadata.deletion_timestamp for p in pods if p.spec.node_name)

    await eventually(nothing_half_placed, 90.0)


async def test_it_ends_in_order_when_told_to(any_server):
    running = PartProcess(
        any_server.data / "kubeconfigs" / "scheduler.kubeconfig", options=()
    ).start()
    assert running.stop() == 0


async def test_the_other_takes_over_when_the_leader_ends(any_server, client):
    config = any_server.data / "kubeconfigs" / "scheduler.kubeconfig"
    first = PartProcess(config, options=("--identity", "one")).start()
    second = PartProcess(config, options=("--identity", "two")).start()
    try:
        await add_nodes(client, ["n1"])

        async def bound(name: str) -> bool:
            return bool((await client.get(PODS, name, "default")).spec.node_name)

        await client.create(PODS, pod_body("before", gpus=1))
        await eventually(lambda: bound("before"))
        assert first.stop() == 0
        await client.create(PODS, pod_body("after", gpus=1))
        await eventually(lambda: bound("after"), 90.0)
        before, after = [
            (await client.get(PODS, name, "default")).metadata.annotations["lockstep.dev/gpus"]
            for name in ("before", "after")
        ]
        assert before != after, "the second knows what the first gave out"
    finally:
        first.kill()
        second.kill()
