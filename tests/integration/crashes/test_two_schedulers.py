"""Two schedulers and one lease: the leader is killed or stopped in a storm of bindings.

Whatever the moment, no GPU is ever bound twice, and in the end every pod has a node.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
from tests.support.apiserver import ApiServer
from tests.support.audit import Audit
from tests.support.scheduler import PartProcess, add_gang, add_nodes, pod_body
from tests.support.waiting import eventually

from lockstep.api.core import LEASES, PODS, Pod
from lockstep.api.gang import GANGS
from lockstep.kube.cache import Change
from lockstep.kube.client import Client
from lockstep.kube.crds import ensure_crds

SINGLES, GANGS_OF_8 = 24, 3
GPUS = SINGLES + 8 * GANGS_OF_8
"""What one storm asks for."""
SOAK = [pytest.mark.soak, pytest.mark.timeout(1800)]
Blow = Callable[[PartProcess], None]


@dataclass
class Pair:
    """Two schedulers of which one leads."""

    client: Client
    schedulers: tuple[PartProcess, PartProcess]

    async def leader(self) -> PartProcess:
        """Return the one that holds the lease, once one does."""

        async def look() -> PartProcess | None:
            leases = (await self.client.list(LEASES, "lockstep-system")).items
            for scheduler in self.schedulers:
                assert scheduler.process is not None
                mark = f"-{scheduler.process.pid}-"
                if scheduler.process.poll() is None and any(
                    mark in lease.spec.holder_identity for lease in leases
                ):
                    return scheduler
            return None

        return await eventually(look, 40.0, "a leader")


@asynccontextmanager
async def pair(server: ApiServer, client: Client) -> AsyncIterator[Pair]:
    config = server.data / "kubeconfigs" / "scheduler.kubeconfig"
    both = (PartProcess(config, options=()), PartProcess(config, options=()))
    try:
        for scheduler in both:
            await asyncio.to_thread(scheduler.start)
        yield Pair(client, both)
    finally:
        for scheduler in both:
            scheduler.kill()


async def storm(client: Client, number: int) -> None:
    await asyncio.gather(
        *(add_gang(client, f"s{number}-g{i}", 8, gpus=1) for i in range(GANGS_OF_8)),
        *(client.create(PODS, pod_body(f"s{number}-p{i}", gpus=1)) for i in range(SINGLES)),
    )


def bound(audit: Audit) -> int:
    return sum(bool(pod.spec.node_name) for pod in audit.pods)


async def struck(audit: Audit, moment: int, strike: Callable[[], None]) -> None:
    """Strike right when so many pods are seen to be bound, in the middle of whatever happens."""
    done = asyncio.Event()

    def look(_: Change[Pod]) -> None:
        if not done.is_set() and bound(audit) >= moment:
            strike()
            done.set()

    cancel = audit.pods.subscribe(look)
    try:
        async with asyncio.timeout(40.0):
            await done.wait()
    finally:
        cancel()


async def check(client: Client, audit: Audit, storms: int) -> None:
    """All pods are bound and all gangs whole, and never did two hold one GPU."""
    await eventually(lambda: bound(audit) == storms * GPUS, 60.0, f"{storms * GPUS} pods bound")
    audit.check()

    async def whole() -> bool:
        gangs = (await client.list(GANGS)).items
        return all(gang.status.phase == "Placed" for gang in gangs)

    await eventually(whole, 20.0, "all gangs are placed")


async def endure(server: ApiServer, blows: int, strike: Blow, after: Blow) -> None:
    """Let *blows* storms come; in each, *strike* the leader somewhere, and *after* it mend that."""
    dice = random.Random(blows)  # noqa: S311  a seeded choice of cases
    async with server.client() as client:
        await ensure_crds(client)
        await add_nodes(client, [f"n{i}" for i in range((GPUS * blows) // 8)])
        async with Audit.running(client) as audit, pair(server, client) as two:
            for number in range(blows):
                leader = await two.leader()
                moment = number * GPUS + dice.randrange(GPUS)
                await asyncio.gather(
                    storm(client, number), struck(audit, moment, lambda one=leader: strike(one))
                )
                await eventually(
                    lambda number=number: bound(audit) == (number + 1) * GPUS, 60.0, "all bound"
                )
                await asyncio.to_thread(after, leader)
            await check(client, audit, blows)


def stop(scheduler: PartProcess) -> None:
    assert scheduler.process is not None
    os.kill(scheduler.process.pid, signal.SIGSTOP)


def let_go_on(scheduler: PartProcess) -> None:
    assert scheduler.process is not None
    os.kill(scheduler.process.pid, signal.SIGCONT)


def start_again(scheduler: PartProcess) -> None:
    scheduler.start()


@pytest.mark.parametrize("kills", [2, pytest.param(25, marks=SOAK)])
async def test_no_gpu_is_bound_twice_when_leaders_are_killed(
    any_server: ApiServer, kills: int
) -> None:
    await endure(any_server, kills, PartProcess.kill, start_again)


@pytest.mark.parametrize("stops", [1, pytest.param(8, marks=SOAK)])
async def test_no_gpu_is_bound_twice_when_leaders_are_stopped(
    any_server: ApiServer, stops: int
) -> None:
    await endure(any_server, stops, stop, let_go_on)
