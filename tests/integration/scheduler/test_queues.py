"""Queues on a server: limits, reclaim and preemption, with what users see of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.scheduler import PartProcess, add_gang, add_nodes, nodes_of
from tests.support.waiting import eventually

from lockstep.api.core import PODS, PRIORITY_CLASSES
from lockstep.api.gang import GANGS
from lockstep.api.queue import QUEUES
from lockstep.kube.client import Client

GPU = "nvidia.com/gpu"


@pytest.fixture
def scheduler(any_server: Any) -> Iterator[PartProcess]:
    part = PartProcess(any_server.data / "kubeconfigs" / "scheduler.kubeconfig").start()
    yield part
    part.kill()


@pytest.fixture
def two_nodes(any_server: Any) -> Iterator[None]:
    configs = any_server.data / "kubeconfigs"
    part = PartProcess(
        configs / "simulate-nodes.kubeconfig", options=("2x8",), part="simulate-nodes"
    ).start()
    yield
    part.kill()


async def add_queue(client: Client, name: str, **spec: Any) -> None:
    await client.create(QUEUES, {"metadata": {"name": name}, "spec": spec})


async def bound(client: Client, gang: str, number: int) -> dict[str, str]:
    async def all_of_them() -> dict[str, str] | None:
        found = await nodes_of(client, gang)
        return found if len(found) == number else None

    return await eventually(all_of_them)


async def test_a_limit_holds_gangs_back_with_reasons_until_quota_frees(any_server, scheduler):
    async with any_server.client() as client:
        await add_queue(client, "org", limit={GPU: 16})
        await add_queue(client, "team", parent="org")
        await add_nodes(client, ["a", "b", "c"])
        await add_gang(client, "first", 2, queue="team")
        await bound(client, "first", 2)
        await add_gang(client, "late", 1, queue="team")

        async def told() -> bool:
            status = (await client.get(GANGS, "late", "default")).status
            return status.reason == "OverQuota" and status.position == 1

        await eventually(told)
        status = (await client.get(GANGS, "late", "default")).status
        assert "queue org uses 16 of the 16 GPUs of its limit: 8 GPUs short" in status.message

        async def shown() -> bool:
            found = (await client.get(QUEUES, "org")).status
            return (found.used, found.pending, found.running) == ({GPU: 16}, 1, 1)

        await eventually(shown)
        await client.patch(QUEUES, "org", {"spec": {"limit": {GPU: 24}}})
        await bound(client, "late", 1)


async def test_borrowed_quota_returns_to_the_gang_it_was_freed_for(
    any_server, scheduler, two_nodes
):
    async with any_server.client() as client:
        await add_queue(client, "mine", guaranteed={GPU: 16})
        await add_queue(client, "theirs")
        await add_gang(client, "borrower", 2, queue="theirs")
        await bound(client, "borrower", 2)
        await add_gang(client, "owner", 2, queue="mine", topology={"required": "leaf"})
        await bound(client, "owner", 2)
        assert await nodes_of(client, "borrower") == {}

        async def cleared() -> bool:
            return not (await client.get(GANGS, "owner", "default")).status.nominated

        await eventually(cleared)


async def test_the_less_important_ends_gracefully_and_is_told_why(any_server, scheduler, two_nodes):
    finalizers = {"finalizers": ["test/observed"]}
    async with any_server.client() as client:
        await client.create(PRIORITY_CLASSES, {"metadata": {"name": "high"}, "value": 100})
        await add_gang(client, "low", 2)
        where = await bound(client, "low", 2)
        await client.patch(PODS, "low-0", {"metadata": finalizers}, "default")
        await add_gang(client, "vip", 2, priorityClassName="high")

        async def ending() -> bool:
            pod = await client.get(PODS, "low-0", "default")
            return pod.metadata.deletion_timestamp is not None

        await eventually(ending)
        pod = await client.get(PODS, "low-0", "default")
        (why,) = [c for c in pod.status.conditions if c.type == "DisruptionTarget"]
        assert (why.status, why.reason) == ("True", "PreemptionByScheduler")
        assert "default/vip" in why.message
        # The scheduler dies; whoever comes next keeps the place for whom it was freed.
        scheduler.kill()
        assert (await client.get(GANGS, "vip", "default")).status.nominated.keys() == {
            "vip-0",
            "vip-1",
        }
        await add_gang(client, "thief", 1)
        scheduler.start()

        async def explained() -> bool:
            return (await client.get(GANGS, "vip", "default")).status.reason == "Preempting"

        await eventually(explained)
        await client.patch(PODS, "low-0", {"metadata": {"finalizers": None}}, "default")
        assert set((await bound(client, "vip", 2)).values()) == set(where.values())
        assert await nodes_of(client, "thief") == {}
