"""Killed again and again while gangs arrive: each is whole or not there, no device is doubled."""

from __future__ import annotations

import asyncio
import random
from collections import Counter, defaultdict

import pytest
from tests.support.scheduler import PartProcess, add_gang, add_nodes
from tests.support.waiting import eventually

from lockstep.api.core import PODS
from lockstep.api.gang import GANGS
from lockstep.kube.client import Client
from lockstep.kube.crds import ensure_crds

KILLS = 3


async def bring_gangs(client: Client, round_: int, dice: random.Random) -> None:
    sizes = [dice.choice([8, 16, 24]) for _ in range(4)]
    tiers = [dice.choice(["leaf", "spine"]) for _ in range(4)]
    await asyncio.gather(
        *(
            add_gang(client, f"g{round_}-{i}", size, gpus=1, topology={"required": tier})
            for i, (size, tier) in enumerate(zip(sizes, tiers, strict=True))
        )
    )


async def settled(client: Client) -> bool:
    gangs = (await client.list(GANGS)).items
    return all(g.status.phase == "Placed" or g.status.message for g in gangs)


@pytest.mark.parametrize("seed", [1, 2])
async def test_gangs_are_whole_or_not_there_whenever_it_is_killed(any_server, seed):
    dice = random.Random(seed)  # noqa: S311  a seeded choice of cases
    scheduler = PartProcess(any_server.data / "kubeconfigs" / "scheduler.kubeconfig")
    try:
        async with any_server.client() as client:
            await ensure_crds(client)
            for spine in "ab":
                for leaf in "xy":
                    names = [f"{spine}{leaf}{i}" for i in range(6)]
                    await add_nodes(client, names, spine=spine, leaf=leaf)
            for round_ in range(KILLS):
                scheduler.start()
                arriving = asyncio.create_task(bring_gangs(client, round_, dice))
                await asyncio.sleep(dice.uniform(0.0, 0.4))  # the moment of the kill is the case
                scheduler.kill()
                await arriving
            scheduler.start()
            await eventually(lambda: settled(client), 90.0)
            await check(client)
    finally:
        scheduler.kill()


async def check(client: Client) -> None:
    where: dict[str, list[str]] = defaultdict(list)
    held: Counter[tuple[str, str]] = Counter()
    for pod in (await client.list(PODS, "default")).items:
        if pod.spec.node_name:
            where[pod.metadata.labels["lockstep.dev/gang"]].append(pod.spec.node_name)
            gpus = pod.metadata.annotations["lockstep.dev/gpus"]
            held.update((pod.spec.node_name, gpu) for gpu in gpus.split(","))
    assert where
    assert max(held.values()) == 1, "a device is held twice"
    for gang in (await client.list(GANGS)).items:
        nodes = where[gang.metadata.name]
        assert len(nodes) in (0, gang.spec.min_member)
        assert bool(nodes) == (gang.status.phase == "Placed")
        depth = {"spine": 1, "leaf": 2}[gang.spec.topology.required]
        assert len({node[:depth] for node in nodes}) <= 1
