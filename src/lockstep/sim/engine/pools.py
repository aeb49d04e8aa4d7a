"""Node pools in simulated time: the same decisions as in production, and what they cost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import structs

from lockstep.api import timestamp
from lockstep.api.core import Node
from lockstep.api.names import IDLE_ANNOTATION, LEAVING_ANNOTATION
from lockstep.api.node_pool import NodePool
from lockstep.insight.cost.prices import HOUR, read
from lockstep.insight.history.deriving import node_span
from lockstep.pools.core.book import Book
from lockstep.pools.core.growth import Growth, grow
from lockstep.pools.core.pool import Pool
from lockstep.pools.core.prices import node_hour
from lockstep.pools.core.shrinking import shrink
from lockstep.scheduler.core.runtime.clock import SimulatedClock
from lockstep.scheduler.core.state.cluster import Cluster
from lockstep.sim.input.faults import Dice
from lockstep.sim.input.initial_cluster import InitialCluster, InputError
from lockstep.sim.result.record import PoolBill


def _as_any_other(pool: NodePool) -> NodePool:
    """Return *pool* with nodes for any gang: in simulated time no node runs a command."""
    provider = structs.replace(pool.spec.provider, simulated=None)
    return structs.replace(pool, spec=structs.replace(pool.spec, provider=provider))


class SimulatedPools:
    """All pools of a world; without any it does nothing."""

    def __init__(
        self,
        world: InitialCluster,
        cluster: Cluster,
        clock: SimulatedClock,
        dice: Dice,
        lose: Callable[[str], None],
    ) -> None:
        """*lose* takes away what runs on a node.

        Raises:
            InputError: when prices contradict each other.
        """
        self._world = world
        self._cluster = cluster
        self._clock = clock
        self._dice = dice
        self._lose = lose
        self._prices, wrong = read(world.price_lists)
        if wrong:
            raise InputError(str(wrong[0]))
        self._pools = {pool.metadata.name: _as_any_other(pool) for pool in world.pools}
        self._nodes: dict[str, dict[int, Node]] = {name: {} for name in self._pools}
        self._since: dict[str, float] = {}
        """By node since when it is paid for, in Unix seconds."""
        self._bills = {name: PoolBill() for name in self._pools}
        self._due: float | None = None

    @property
    def open(self) -> bool:
        """Return whether nodes are on their way, or will be given back."""
        return self._due is not None or any(pool.status.requests for pool in self._pools.values())

    def look(self, *, waiting: bool) -> None:
        """Decide what to get and to give back now; *waiting* says whether anything waits."""
        if not self._pools:
            return
        cluster, now = self._cluster, self._clock.unix
        book = Book(now)
        seen = [book.review(cluster, self._view(name, now)) for name in self._pools]
        short = any(pool.size < pool.object.spec.min for pool in seen)
        growth = grow(cluster, seen, now) if waiting or short else Growth()
        for pool in seen:
            self._settle(book.enter(pool, growth, cluster))
        self._due = None
        for name in self._pools:
            self._shrink(self._view(name, now), growth, now)
        if self._due is not None:
            self._plan("pools", max(0.0, self._due - now), _nothing)

    def finish(self) -> dict[str, PoolBill]:
        """Return what each pool has cost up to now, and what the nodes that are always there."""
        now = self._clock.unix
        for name, nodes in self._nodes.items():
            for node in nodes.values():
                self._pay(name, node.metadata.name, now)
        fixed = self._fixed(now)
        return {**self._bills, **({"fixed": fixed} if fixed.cost else {})}

    def _fixed(self, now: float) -> PoolBill:
        """Return what the nodes cost that are always there, where their prices are known."""
        nodes = self._world.nodes.values() if self._prices.entries else ()
        bill = PoolBill(most=len(self._world.nodes))
        for node in nodes:
            span = node_span(node, self._world.epoch)
            for start, end, rate in self._prices.rates(span, span.start, now) if span else ():
                bill.node_hours += (end - start) / HOUR
                bill.cost += (rate or 0.0) * (span.gpus if span else 0) * (end - start) / HOUR
        return bill

    def _reclaim(self, pool: str, slot: int) -> None:
        """Let the cloud take a node back, with the pods that run there."""
        node = self._nodes[pool].pop(slot)
        name = node.metadata.name
        self._lose(name)
        self._cluster.remove_node(name)
        self._pay(pool, name, self._clock.unix)
        self._bills[pool].reclaimed += 1

    def _plan(self, key: object, delay: float, act: Callable[..., None], *args: Any) -> None:
        self._clock.agenda.replace(key, self._clock.now + delay, act, *args)

    def _view(self, name: str, now: float) -> Pool:
        nodes, obj = self._nodes[name], self._pools[name]
        leaving = (s for s, n in nodes.items() if LEAVING_ANNOTATION in n.metadata.annotations)
        return Pool(
            obj,
            node_hour(obj, self._prices, now),
            {slot: node.metadata.name for slot, node in nodes.items()},
            frozenset(nodes),
            frozenset(leaving),
        )

    def _settle(self, pool: Pool) -> None:
        """Keep a pool's requests, and have the nodes of new ones come when it is time."""
        status = pool.object.status
        new = [one for one in status.requests if not one.sent]
        sent = [structs.replace(one, sent=True) for one in status.requests]
        obj = structs.replace(pool.object, status=structs.replace(status, requests=sent))
        self._pools[pool.name] = obj
        for request in new:
            key = ("arrival", pool.name, request.id)
            self._plan(key, pool.arrival, self._arrive, pool, request.id)

    def _arrive(self, asked: Pool, request_id: str) -> None:
        wanted = [one for one in self._pools[asked.name].status.requests if one.id == request_id]
        nodes, bill = self._nodes[asked.name], self._bills[asked.name]
        for slot in (slot for request in wanted for slot in request.slots):
            node = nodes[slot] = asked.node(slot)
            self._since[node.metadata.name] = self._clock.unix
            self._cluster.set_node(node)
            key = ("reclaim", asked.name, slot)
            self._plan(key, self._dice.node_fails(node), self._reclaim, asked.name, slot)
            bill.bought += 1
        bill.most = max(bill.most, len(nodes))

    def _shrink(self, pool: Pool, growth: Growth, now: float) -> None:
        cluster, nodes = self._cluster, self._nodes[pool.name]
        needed = set(growth.needed)
        for nomination in cluster.nominations:
            needed.update(nomination.nodes.values())
        if cluster.reservations.room is not None:
            needed.update(cluster.reservations.room.place.values())
        found = shrink(
            pool, nodes.values(), now, busy=lambda n: any(cluster.on_node(n)), needed=needed
        )
        stamp = timestamp.show(now)
        for node in found.idle:
            self._note(pool, node, {IDLE_ANNOTATION: stamp})
        for node in (*found.used, *found.stay):
            self._note(pool, node, {IDLE_ANNOTATION: "", LEAVING_ANNOTATION: ""})
        for node in found.leave:
            self._note(pool, node, {LEAVING_ANNOTATION: stamp})
        for node in found.give_back:
            slot = next(slot for slot, one in nodes.items() if one is node)
            del nodes[slot]
            self._clock.agenda.drop(("reclaim", pool.name, slot))
            self._pay(pool.name, node.metadata.name, now)
            self._cluster.remove_node(node.metadata.name)
        if found.look_at is not None:
            self._due = found.look_at if self._due is None else min(self._due, found.look_at)

    def _note(self, pool: Pool, node: Node, annotations: dict[str, str]) -> None:
        """Write annotations of a node, and cordon it where it leaves."""
        kept = {**node.metadata.annotations, **annotations}
        meta = structs.replace(
            node.metadata, annotations={key: value for key, value in kept.items() if value}
        )
        leaves = LEAVING_ANNOTATION in meta.annotations
        noted = structs.replace(
            node, metadata=meta, spec=structs.replace(node.spec, unschedulable=leaves)
        )
        slot = next(slot for slot, one in self._nodes[pool.name].items() if one is node)
        self._nodes[pool.name][slot] = noted
        if leaves != node.spec.unschedulable:
            self._cluster.set_node(noted)

    def _pay(self, pool: str, node: str, now: float) -> None:
        since = self._since.pop(node, now)
        hours = (now - since) / HOUR
        price = node_hour(self._pools[pool], self._prices, since)
        bill = self._bills[pool]
        bill.node_hours += hours
        if price is not None:
            bill.cost += hours * price


def _nothing() -> None:
    """Happen, so that it is looked again."""
