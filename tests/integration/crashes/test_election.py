"""A leader, ended at each call, beside a candidate that waits for its lease: never two at once."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from tests.support.crashing import Arena, Scenario, Stage
from tests.support.lives import in_process
from tests.support.scheduler import add_gang, add_nodes

from lockstep.api.core import LEASES, PODS
from lockstep.api.gang import GANGS
from lockstep.api.names import SYSTEM_NAMESPACE
from lockstep.kube.client import Client
from lockstep.kube.election import Timing
from lockstep.runtime.manager import Manager
from lockstep.scheduler.main import add_scheduler

TIMING = Timing(lease=2.0, fence=1.2, retry=0.1)
_lives = itertools.count()


async def candidate(client: Client, ready: Callable[[str], None]) -> None:
    """Schedule while elected; each life is a candidate of its own, as each process is."""
    manager = Manager(client, name="scheduler", identity=f"life-{next(_lives)}", timing=TIMING)
    add_scheduler(manager)
    await manager.run(ready)


async def two_gangs(stage: Stage) -> None:
    client = stage.client
    await add_nodes(client, ["a", "b", "c"])
    stage.start()

    async def leads() -> bool:
        leases = (await client.list(LEASES, SYSTEM_NAMESPACE)).items
        return any(lease.spec.holder_identity for lease in leases)

    await stage.until(leads, "somebody leads")
    stage.join(candidate)
    await add_gang(client, "first", 2, gpus=6)

    async def first_placed() -> bool:
        gang = await client.get(GANGS, "first", "default")
        return gang.status.phase == "Placed"

    await stage.until(first_placed, "the first gang is placed")
    await add_gang(client, "second", 5, gpus=2)


async def outcome(stage: Stage) -> object:
    pods = (await stage.client.list(PODS, "default")).items
    gangs = (await stage.client.list(GANGS)).items
    return {
        "pods": {p.metadata.name: bool(p.spec.node_name) for p in pods},
        "gangs": {g.metadata.name: (g.status.phase, g.status.bound) for g in gangs},
        "made": dict(stage.audit.made),
    }


async def test_it_ends_the_same_wherever_the_leader_ends(arena: Arena) -> None:
    scenario = Scenario(in_process(candidate), two_gangs, outcome)
    await arena.endures(scenario)
