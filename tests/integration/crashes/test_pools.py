"""The controller of node pools, ended at each of its calls: no node lost, none bought twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.support import parts
from tests.support.crashing import Arena, Scenario, Stage
from tests.support.lives import in_process
from tests.support.scheduler import add_gang
from tests.support.stand_in_clouds import HookCloud

from lockstep.api.core import NODES, PODS
from lockstep.api.gang import GANGS
from lockstep.api.names import HELD_TAINT
from lockstep.api.node_pool import NODE_POOLS
from lockstep.kube.client import Client
from lockstep.pools.main import add_pools
from lockstep.runtime.manager import Manager

Json = dict[str, Any]
TEMPLATE = {"capacity": {"cpu": 96, "memory": "1Ti", "nvidia.com/gpu": 8}}
SPEC: Json = {"max": 4, "idle": "1s", "arrival": "1s", "timeout": "60s", "template": TEMPLATE}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the pauses of pools short."""
    for name, seconds in (("RETRY", 0.1), ("GATHER", 0.01), ("WATCH_SECONDS", 0.2)):
        monkeypatch.setattr(f"lockstep.pools.controller.{name}", seconds)
    monkeypatch.setattr("lockstep.pools.calls.REST", 0.1)
    monkeypatch.setattr("lockstep.pools.core.shrinking.SETTLE_SECONDS", 0.0)


async def pools(client: Client, ready: Callable[[str], None]) -> None:
    """Look after pools, without an election."""
    manager = Manager(client, name="controllers", leader_elect=False)
    add_pools(manager)
    await manager.run(ready)


async def told(stage: Stage) -> None:
    """A gang gets two nodes, stands on them, ends, and the nodes go back."""
    cloud = HookCloud(stage.client)
    async with cloud.served() as url:
        stage.join(parts.scheduler)
        stage.start()
        spec = {**SPEC, "provider": {"hook": {"url": url}}}
        await stage.client.create(NODE_POOLS, {"metadata": {"name": "p"}, "spec": spec})
        await add_gang(stage.client, "big", 2, gpus=8)

        async def stands() -> bool:
            nodes = (await stage.client.list(NODES)).items
            held = any(t.key == HELD_TAINT for node in nodes for t in node.spec.taints)
            gang = await stage.client.get(GANGS, "big", "default")
            return gang.status.phase == "Placed" and not held

        await stage.until(stands, "the gang stands on nodes that are held no more")
        assert sorted(cloud.created) == ["p-0", "p-1"], "bought twice"
        for pod in (await stage.client.list(PODS, "default")).items:
            await stage.client.delete(PODS, pod.metadata.name, "default", grace_seconds=0)
        await stage.client.delete(GANGS, "big", "default")

        async def empty() -> bool:
            status = (await stage.client.get(NODE_POOLS, "p")).status
            settled = (status.nodes, status.coming, status.requests) == (0, 0, [])
            nodes = (await stage.client.list(NODES)).items
            return settled and not cloud.machines and not nodes

        await stage.until(empty, "no machine is left")
        assert sorted(cloud.created) == ["p-0", "p-1"], "bought without need"


async def outcome(stage: Stage) -> object:
    """Return what is left of nodes and requests."""
    status = (await stage.client.get(NODE_POOLS, "p")).status
    nodes = [node.metadata.name for node in (await stage.client.list(NODES)).items]
    return nodes, status.nodes, status.requests, status.failures


def story() -> Scenario:
    return Scenario(in_process(pools), told, outcome)


async def test_no_node_is_lost_or_bought_twice_wherever_it_ends(arena: Arena) -> None:
    await arena.endures(story())


@pytest.mark.real_sample()
async def test_no_node_is_lost_or_bought_twice_in_any_weather(arena: Arena) -> None:
    await arena.weathers(story(), range(arena.seeds))
