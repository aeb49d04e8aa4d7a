"""Lockstep's parts as coroutines over a client, to be run in the test's own process."""

from __future__ import annotations

from collections.abc import Callable

from lockstep.jobs.main import add_jobs
from lockstep.kube.client import Client
from lockstep.nodes.simulated.simulation import Simulation
from lockstep.nodes.simulated.spec import parse
from lockstep.runtime.manager import Manager
from lockstep.scheduler.main import add_scheduler

NODES = "4x8,nodes-per-leaf=2"


async def scheduler(client: Client, ready: Callable[[str], None]) -> None:
    """Schedule, without an election."""
    manager = Manager(client, name="scheduler", leader_elect=False)
    add_scheduler(manager)
    await manager.run(ready)


async def controllers(client: Client, ready: Callable[[str], None]) -> None:
    """Control jobs, without an election."""
    manager = Manager(client, name="controllers", leader_elect=False)
    add_jobs(manager)
    await manager.run(ready)


async def nodes(client: Client, ready: Callable[[str], None]) -> None:
    """Simulate four nodes of eight GPUs under two leaves."""
    await Simulation(client, parse(NODES)).run(lambda: ready("nodes"))


async def cards(client: Client, ready: Callable[[str], None]) -> None:
    """Simulate one node of two GPUs."""
    await Simulation(client, parse("1x2")).run(lambda: ready("nodes"))
