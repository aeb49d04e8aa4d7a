"""The shell around the decisions: reads the caches, writes requests down, carries them out.

What is to be got stands in the pool's status before a provider is told of it, and a provider that
is told twice makes it once. So a process that ends between any two calls leaves nothing behind that
its successor does not find.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace

from lockstep.api import timestamp
from lockstep.api.gang import Provision
from lockstep.api.node_pool import NODE_POOLS, NodePool
from lockstep.kube.errors import ApiError, Conflict, NotLeading
from lockstep.kube.informer import Informer
from lockstep.pools.calls import Calls
from lockstep.pools.core import holding
from lockstep.pools.core.adoption import adoptions
from lockstep.pools.core.book import Book, patch
from lockstep.pools.core.emptying import emptying, in_use
from lockstep.pools.core.growth import Growth, grow
from lockstep.pools.core.pool import Pool, held_for, is_ready, problems, seen
from lockstep.pools.core.reclaiming import announced
from lockstep.pools.core.shrinking import shrink
from lockstep.pools.metrics import PoolMetrics
from lockstep.pools.providers.registry import Providers
from lockstep.pools.scheduler_view import SchedulerView
from lockstep.pools.upkeep import Upkeep
from lockstep.runtime.manager import Manager
from lockstep.runtime.status import patch_status
from lockstep.scheduler.core.model.workload import WorkloadKey

log = logging.getLogger(__name__)

GATHER = 0.05
"""Seconds in which changes gather before they are looked at."""
RETRY = 1.0
CLEAR_SECONDS = 5.0
"""Seconds after which pods that may not leave yet are asked again."""
AUDIT_SECONDS = 60.0
"""Seconds between two looks for machines that belong to no node and no request."""
EMPTY_SECONDS = 30.0
"""Seconds between two looks for a node whose gangs can move to others."""
WATCH_SECONDS = 5.0
"""Seconds between two looks at what has become of nodes on their way."""


class PoolController:
    """Grows and shrinks all pools."""

    def __init__(
        self,
        manager: Manager,
        providers: Providers,
        prices: Callable[[NodePool], float | None],
        metrics: PoolMetrics,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._manager = manager
        self._pools: Informer[NodePool] = manager.informer(NODE_POOLS)
        self._recorder = manager.recorder("node-pools")
        self._prices = prices
        self._clock = clock
        self._wake = asyncio.Event()
        self._written: dict[str, NodePool] = {}
        """Pools as they were last written, until the informer shows them so."""
        self._calls = Calls(providers, manager.client, self._wake.set)
        self._upkeep = Upkeep(manager.client)
        self._metrics = metrics
        self._told: dict[WorkloadKey, Provision] = {}
        self._audited: dict[str, float] = {}
        self._telling: asyncio.Task[None] | None = None
        self._looked_at = 0.0

    async def run(self) -> None:
        """Look after the pools until cancelled; without any nothing is kept."""
        unsubscribe = self._pools.subscribe(lambda _: self._wake.set())
        try:
            while True:
                await self._wake.wait()
                self._wake.clear()
                if len(self._pools):
                    await self._while_pools()
        finally:
            unsubscribe()
            if self._telling is not None:
                self._telling.cancel()
            await self._calls.close()

    async def _while_pools(self) -> None:
        """Keep a view of the cluster and look after the pools as long as there are any."""
        world, known = SchedulerView(self._manager, self._wake.set), asyncio.Event()
        following = asyncio.create_task(world.follow(known))
        waiting = asyncio.create_task(known.wait())
        try:
            await asyncio.wait([following, waiting], return_when=asyncio.FIRST_COMPLETED)
            while len(self._pools):
                if following.done():
                    following.result()
                await self._turn(world)
        finally:
            for task in (following, waiting):
                task.cancel()
            await asyncio.gather(following, waiting, return_exceptions=True)

    async def _turn(self, world: SchedulerView) -> None:
        """Look once, then wait until there is reason to look again."""
        self._wake.clear()
        again: float | None = RETRY
        try:
            again = await self.step(world)
        except (Conflict, NotLeading) as error:
            log.debug("pools: %s; again in %.1f s", error, RETRY)
        except ApiError as error:
            log.warning("pools: %s; again in %.1f s", error, RETRY)
        except Exception:
            log.exception("looking after the pools failed; again in %.1f s", RETRY)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(again):
                await self._wake.wait()
        await asyncio.sleep(GATHER)

    async def step(self, world: SchedulerView) -> float | None:
        """Do what is due; return the seconds after which something is due though nothing changes.

        Raises:
            ApiError: when the server cannot be used now.
        """
        now = self._clock()
        book = Book(now)
        pools, invalid = list[Pool](), list[Pool]()
        for there in self._read(world):
            pool = await self._adopt(world, there)
            (invalid if any(problems(pool.object)) else pools).append(pool)
        invalid = [book.invalid(pool, "; ".join(problems(pool.object))) for pool in invalid]
        reviewed = [self._review(world, book.valid(pool), book) for pool in pools]
        growth = grow(world.cluster, reviewed, now, judged=True)
        world.cluster.touched.clear()
        settled = [book.enter(pool, growth, world.cluster) for pool in reviewed]
        written = [await self._write(world, pool, book) for pool in (*settled, *invalid)]
        current = written[: len(settled)]
        self._metrics.show(written)
        self._calls.send(current, book)
        await self._admit(world, current)
        due = [await self._shrink(world, pool, growth, now) for pool in current]
        due.append(await self._empty(world, current, growth, now))
        self._tell_gangs(world, current, growth, now)
        due += [holding.next_end(pool, now) for pool in current]
        due += [pool.rests_until() for pool in current]
        due.append(self._audit(current, now))
        left = [at - now for at in due if at is not None and at > now]
        return max(0.05, min(left)) if left else None

    def _read(self, world: SchedulerView) -> list[Pool]:
        """Return the pools as they are now, the newest view of each."""
        found = []
        for known in sorted(self._pools, key=lambda one: one.metadata.name):
            name = known.metadata.name
            ours = self._written.get(name)
            newer = ours is not None and _version(ours) > _version(known)
            obj = ours if ours is not None and newer and _same(ours, known) else known
            nodes, blocked = world.of_pool(name), self._calls.blocked(name)
            found.append(seen(obj, nodes, self._prices(obj), blocked))
        names = {pool.name for pool in found}
        self._written = {name: one for name, one in self._written.items() if name in names}
        return found

    async def _adopt(self, world: SchedulerView, pool: Pool) -> Pool:
        """Take in nodes that were made for a pool and do not bear its name."""
        found = adoptions(pool, world.nodes)
        if not found:
            return pool
        await self._upkeep.adopt(pool, found)
        new = {one.slot: one.node for one in found}
        return replace(
            pool,
            names={**pool.names, **{slot: node.metadata.name for slot, node in new.items()}},
            ready=pool.ready | {slot for slot, node in new.items() if is_ready(node)},
        )

    def _review(self, world: SchedulerView, pool: Pool, book: Book) -> Pool:
        """Return a pool after what became of its requests; note what follows from that."""
        for outcome in self._calls.take(pool.name):
            pool = book.note(pool, outcome)
            if outcome.error is not None:
                failure = outcome.error
                self._recorder.event(pool.object, "Warning", failure.reason, failure.message)
                self._metrics.failures.labels(pool.name, failure.reason).inc()
        return book.review(world.cluster, pool)

    async def _write(self, world: SchedulerView, pool: Pool, book: Book) -> Pool:
        """Write a pool's status where it changed; return the pool as it stands then."""
        idle = sum(not world.busy(name) for name in pool.names.values())
        status = book.status(pool, idle)
        there = self._newest(pool.object)
        for text in book.news(pool.name):
            self._recorder.event(pool.object, "Normal", "NodesDecided", text)
        if status == there.status:
            return pool
        change, client = patch(there.status, status), self._manager.client
        written = await patch_status(client, NODE_POOLS, there.metadata, change, seen=True)
        self._written[pool.name] = written
        return replace(pool, object=written)

    def _newest(self, obj: NodePool) -> NodePool:
        """Return a pool as the server has it, as far as is known: *obj* may have been worked on."""
        name = obj.metadata.name
        known = self._pools.get("", name)
        ours = self._written.get(name)
        if ours is not None and (known is None or _version(ours) > _version(known)):
            return ours
        return known if known is not None else obj

    async def _admit(self, world: SchedulerView, pools: Sequence[Pool]) -> None:
        """Let the pods of those for whom nodes are held go there."""
        for key, requests in holding.holds(pools).items():
            workload = world.cluster.workloads.get(key)
            if workload is not None:
                mine = (world.pods.get(key.namespace, m.name) for m in workload.members.values())
                await self._upkeep.admit((pod for pod in mine if pod is not None), requests)

    async def _shrink(
        self, world: SchedulerView, pool: Pool, growth: Growth, now: float
    ) -> float | None:
        """Unhold, cordon and give back nodes; return when something falls due."""
        nodes = world.of_pool(pool.name)
        ids = {request.id for request in pool.requests}
        stale = [n for n in nodes if held_for(n.spec.taints) and held_for(n.spec.taints) not in ids]
        await self._upkeep.unhold(stale)
        needed = growth.needed | _reserved(world)
        found = shrink(pool, nodes, now, busy=world.busy, needed=needed)
        await self._upkeep.shrink(found, now)
        for node in found.clear:
            name = node.metadata.name
            text = f"node {name} is taken back: its pods are asked to leave"
            self._recorder.event(pool.object, "Warning", "Reclaimed", text)
            await self._upkeep.clear(world.on_node(name))
            found.due(now + CLEAR_SECONDS)
        for node in found.give_back:
            self._calls.give_back(pool, node, self._upkeep.empty)
        return found.look_at

    async def _empty(
        self, world: SchedulerView, pools: Sequence[Pool], growth: Growth, now: float
    ) -> float | None:
        """Announce that a node goes whose gangs can move to others; return when to look again."""
        if not in_use(world.cluster):
            return None
        if now >= self._looked_at + EMPTY_SECONDS:
            self._looked_at = now
            nodes = {n.metadata.name: n for pool in pools for n in world.of_pool(pool.name)}
            needed = growth.needed | _reserved(world)
            found = (
                None
                if any(map(announced, nodes.values()))
                else emptying(world.cluster, pools, now, needed=needed, pods=world.keys_on)
            )
            if found is not None:
                await self._upkeep.announce(nodes[found.node])
                pool = next(pool for pool in pools if pool.name == found.pool)
                self._recorder.event(pool.object, "Normal", "Emptied", found.in_words())
        return self._looked_at + EMPTY_SECONDS

    def _tell_gangs(
        self, world: SchedulerView, pools: Sequence[Pool], growth: Growth, now: float
    ) -> None:
        """Write into the gangs' statuses what is done for them, or why nothing is.

        That goes on beside the next looks: hundreds may wait, and no request waits for them.
        """
        workloads = world.cluster.workloads
        for key in self._told.keys() - workloads.keys():
            del self._told[key]
        if self._telling is not None and not self._telling.done():
            return
        todo = []
        for key, workload in workloads.items():
            gang = workload.gang
            if gang is None:
                continue
            told = _provision(pools, growth, key)
            if told == gang.status.provision or self._told.get(key) == told is not None:
                continue
            if told is not None:
                self._told[key] = told
            else:
                self._told.pop(key, None)
            todo.append(self._upkeep.tell(gang, told))
        if todo:
            self._telling = asyncio.create_task(_all(todo))
            self._telling.add_done_callback(lambda _: self._wake.set())

    def _audit(self, pools: Sequence[Pool], now: float) -> float | None:
        """Now and then ask providers what they have; what belongs to nothing is removed."""
        due: list[float] = []
        for pool in pools:
            pause = WATCH_SECONDS if pool.coming else AUDIT_SECONDS
            last = self._audited.get(pool.name)
            if last is None or now >= last + pause:
                self._audited[pool.name] = last = now
                self._calls.audit(pool)
            due.append(last + pause)
        return min(due, default=None)


async def _all(work: Iterable[Awaitable[None]]) -> None:
    """Wait for everything; what fails is tried again when it is looked next."""
    for result in await asyncio.gather(*work, return_exceptions=True):
        if isinstance(result, ApiError):
            log.warning("a gang cannot be told of its nodes: %s", result)
        elif isinstance(result, Exception):
            log.error("telling a gang failed", exc_info=result)


def _provision(pools: Sequence[Pool], growth: Growth, key: WorkloadKey) -> Provision | None:
    by_pool, latest = holding.expected(pools, key)
    if by_pool:
        return Provision(
            phase="Requested" if latest is not None else "Held",
            message=holding.in_words(by_pool),
            pools=by_pool,
            expected_at=timestamp.show(latest) if latest is not None else None,
        )
    why = growth.refused.get(key)
    return Provision(phase="Refused", message=why) if why else None


def _reserved(world: SchedulerView) -> set[str]:
    """Return the nodes on which room is kept for what waits."""
    found: set[str] = set()
    for workload in world.cluster.workloads.values():
        found.update(workload.nominated.values())
        gang = workload.gang
        if gang is not None and gang.status.reservation is not None:
            found.update(gang.status.reservation.place.values())
    return found


def _version(obj: NodePool) -> int:
    version = obj.metadata.resource_version
    return int(version) if version.isdigit() else 0


def _same(one: NodePool, other: NodePool) -> bool:
    return one.metadata.uid == other.metadata.uid
