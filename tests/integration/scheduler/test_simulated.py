"""Gangs from waiting to finished on simulated nodes."""

from __future__ import annotations

from tests.support.scheduler import PartProcess, add_gang, nodes_of
from tests.support.waiting import eventually

from lockstep.api.core import PODS
from lockstep.api.gang import GANGS


async def test_gangs_run_finish_and_make_room_for_the_next(any_server):
    configs = any_server.data / "kubeconfigs"
    scheduler = PartProcess(configs / "scheduler.kubeconfig").start()
    nodes = PartProcess(
        configs / "simulate-nodes.kubeconfig",
        options=("8x8,nodes-per-leaf=4,leaves-per-spine=2",),
        part="simulate-nodes",
    ).start()
    try:
        async with any_server.client() as client:

            async def phase(name: str) -> str:
                return (await client.get(GANGS, name, "default")).status.phase

            async def reaches(name: str, wanted: str) -> bool:
                return await phase(name) == wanted

            wish = {"required": "leaf"}
            for name in ("first", "second", "third"):
                await add_gang(client, name, 4, topology=wish)
            for name in ("first", "second"):
                await eventually(lambda name=name: reaches(name, "Running"))
            first, second = await nodes_of(client, "first"), await nodes_of(client, "second")
            assert len({*first.values(), *second.values()}) == 8
            assert await phase("third") == "Pending"
            for pod in first:
                await client.delete(PODS, pod, "default")
            await eventually(lambda: reaches("third", "Running"))
            assert set((await nodes_of(client, "third")).values()) == set(first.values())
            assert (await client.get(GANGS, "third", "default")).status.domain["leaf"]
    finally:
        nodes.kill()
        scheduler.kill()
