"""Two schedulers and one lease: the leader is killed or stopped in a storm of bindings.

Whatever the moment, no GPU is ever bound twice, and in the end every pod has a node. Where others
have to make room, they do so as whole gangs, and not in vain.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import signal
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

import pytest
from tests.support.apiserver import ApiServer
from tests.support.audit import Audit
from tests.support.scheduler import PartProcess, add_gang, add_nodes, pod_body
from tests.support.stories import IMPORTANT, add_importance
from tests.support.waiting import eventually, stretched
from tests.support.witness import witnessed

from lockstep.api.core import LEASES, PODS, Pod
from lockstep.api.gang import GANGS
from lockstep.api.names import GANG_LABEL, GPU, SYSTEM_NAMESPACE
from lockstep.kube.cache import Change
from lockstep.kube.client import Client
from lockstep.kube.crds import ensure_crds
from lockstep.kube.errors import Conflict, NotFound, ServerFailed, TooManyRequests, Unreachable

log = logging.getLogger(__name__)

SINGLES, GANGS_OF_8 = 24, 3
GPUS = SINGLES + 8 * GANGS_OF_8
"""What one storm asks for."""
HUMBLE_GPUS = 16
"""What a gang holds that has to make room."""
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
            leases = (await self.client.list(LEASES, SYSTEM_NAMESPACE)).items
            for scheduler in self.schedulers:
                assert scheduler.process is not None
                mark = f"-{scheduler.process.pid}-"
                if scheduler.process.poll() is None and any(
                    mark in lease.spec.holder_identity for lease in leases
                ):
                    return scheduler
            return None

        return await eventually(look, 90.0, "a leader")


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


def bound_gpus(audit: Audit) -> int:
    asked = [p.spec.containers[0].resources.limits[GPU] for p in audit.pods if p.spec.node_name]
    return sum(map(int, asked))


async def struck(audit: Audit, moment: Callable[[], bool], strike: Callable[[], None]) -> None:
    """Strike right when the moment is seen to have come, in the middle of whatever happens."""
    done = asyncio.Event()

    def look(_: Change[Pod]) -> None:
        if not done.is_set() and moment():
            strike()
            done.set()

    cancel = audit.pods.subscribe(look)
    try:
        async with asyncio.timeout(stretched(40.0)):
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

    await eventually(whole, 60.0, "all gangs are placed")


async def endure(server: ApiServer, blows: int, strike: Blow, after: Blow) -> None:
    """Let *blows* storms come; in each, *strike* the leader somewhere, and *after* it mend that."""
    dice = random.Random(blows)  # noqa: S311  a seeded choice of cases
    async with server.client() as client:
        await ensure_crds(client)
        await add_nodes(client, [f"n{i}" for i in range((GPUS * blows) // 8)])
        async with (
            Audit.running(client) as audit,
            pair(server, client) as two,
            witnessed(client),
        ):
            for number in range(blows):
                leader = await two.leader()
                moment = number * GPUS + dice.randrange(GPUS)
                await asyncio.gather(
                    storm(client, number),
                    struck(audit, lambda at=moment: bound(audit) >= at, partial(strike, leader)),
                )
                await eventually(
                    lambda number=number: bound(audit) == (number + 1) * GPUS, 60.0, "all bound"
                )
                await asyncio.to_thread(after, leader)
            await check(client, audit, blows)


async def humble(client: Client, gangs: int) -> None:
    """Fill the nodes, two for each gang."""

    async def one(gang: str) -> None:
        meta = {"name": gang, "namespace": "default"}
        await client.create(GANGS, {"metadata": meta, "spec": {"minMember": 8}})
        for i in range(8):
            await client.create(PODS, pod_body(f"{gang}-{i}", gpus=2, gang=gang))

    await asyncio.gather(*(one(f"humble-{i}") for i in range(gangs)))


@asynccontextmanager
async def obeying(client: Client, audit: Audit) -> AsyncIterator[None]:
    """Let pods end that are told to, as their nodes would."""
    changed = asyncio.Event()

    async def confirm() -> None:
        while True:
            changed.clear()
            for pod in [p for p in audit.pods if p.metadata.deletion_timestamp is not None]:
                meta = pod.metadata
                try:
                    await client.delete(PODS, meta.name, "default", grace_seconds=0, uid=meta.uid)
                except (NotFound, Conflict):
                    continue
                except (ServerFailed, TooManyRequests, Unreachable) as error:
                    log.warning("%s does not end yet: %s", meta.name, error)
                    asyncio.get_running_loop().call_later(0.1, changed.set)
            await changed.wait()

    cancel = audit.pods.subscribe(lambda _: changed.set())
    task = asyncio.create_task(confirm())
    try:
        yield
    finally:
        cancel()
        task.cancel()
        (ended,) = await asyncio.gather(task, return_exceptions=True)
        if isinstance(ended, Exception):  # else nobody would know why no room was made
            raise ended


async def proud(client: Client, number: int) -> None:
    """Let gangs and pods come that are more important."""
    spec = {"priorityClassName": IMPORTANT}
    names = [f"proud-{number}-g{i}" for i in range(GANGS_OF_8)]
    singles = [f"proud-{number}-p{i}" for i in range(SINGLES)]
    await asyncio.gather(
        *(add_gang(client, name, 8, gpus=1, **spec) for name in names),
        *(client.create(PODS, pod_body(name, gpus=1, **spec)) for name in singles),
    )


def standing(audit: Audit, kind: str) -> Counter[str]:
    """Return how many pods of each gang of a kind have nodes, those on their own under ``""``."""
    pods = [p for p in audit.pods if p.spec.node_name and p.metadata.name.startswith(kind)]
    return Counter(p.metadata.labels.get(GANG_LABEL, "") for p in pods)


async def endure_evictions(server: ApiServer, kills: int) -> None:
    """Let *kills* storms of evictions and bindings come, and in each kill the leader somewhere."""
    dice = random.Random(kills)  # noqa: S311  a seeded choice of cases
    gangs = 2 * kills * GPUS // HUMBLE_GPUS
    async with server.client() as client:
        await ensure_crds(client)
        await add_importance(client)
        await add_nodes(client, [f"n{i}" for i in range(2 * gangs)])
        async with (
            Audit.running(client) as audit,
            obeying(client, audit),
            pair(server, client) as two,
            witnessed(client),
        ):
            await humble(client, gangs)
            await eventually(lambda: bound(audit) == 8 * gangs, 60.0, "the nodes are full")
            for number in range(kills):
                leader = await two.leader()
                # Ends and bindings together: some kills are in the midst of a gang that leaves.
                began, done = audit.moves, dice.randrange(2 * GPUS // 3)
                await asyncio.gather(
                    proud(client, number),
                    struck(audit, lambda at=began + done: audit.moves > at, leader.kill),
                )
                wanted = (number + 1) * GPUS
                await eventually(
                    lambda wanted=wanted: standing(audit, "proud").total() == wanted, 60.0, "room"
                )
                await asyncio.to_thread(leader.start)
            await eventually(lambda: set(standing(audit, "humble").values()) == {8}, 60.0, "whole")
            audit.check()
            free = 16 * gangs - bound_gpus(audit)
            assert free < HUMBLE_GPUS, "somebody went in vain"


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


@pytest.mark.parametrize("kills", [2, pytest.param(25, marks=SOAK)])
async def test_gangs_leave_whole_and_for_somebody_when_leaders_are_killed(
    any_server: ApiServer, kills: int
) -> None:
    await endure_evictions(any_server, kills)
