"""Which node is emptied so that it can go back: its gangs move to nodes that stay. Pure.

Who may move, what that throws away, and where each gang then stands is what defragmentation says;
the policies of the gangs' queues allow it or not. Nothing moves while anything waits for room.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Final

from lockstep.api import duration, names, quantity
from lockstep.api.queue import DefragmentationPolicy
from lockstep.pools.core.growth import ROOM_REASONS
from lockstep.pools.core.pool import Pool
from lockstep.scheduler.core.defrag.candidates import MoveCandidate, Stated, whole_gang
from lockstep.scheduler.core.defrag.planner import waiting_again
from lockstep.scheduler.core.model.workload import Member, Workload, WorkloadKey
from lockstep.scheduler.core.placement.what_if import WhatIf
from lockstep.scheduler.core.quota.inheritance import defragmentation
from lockstep.scheduler.core.state.cluster import Cluster
from lockstep.scheduler.core.state.disruption_budgets import Allowance
from lockstep.scheduler.core.util.array_types import BoolArray

TRIED: Final = 16
"""Nodes, those of the least price, for which places of their gangs are looked for in one look."""
COSTS: Final = Stated()


@dataclass(frozen=True, slots=True)
class Emptying:
    """A node to empty."""

    pool: str
    node: str
    moves: dict[WorkloadKey, tuple[str, ...]]
    """By gang that moves, the nodes on which it then has room."""
    price: float
    """GPU-seconds of work that are done again."""

    def in_words(self) -> str:
        """Return what happens, and why."""
        gangs = (
            f"{key.namespace}/{key.name} to {', '.join(where)}" for key, where in self.moves.items()
        )
        hours = self.price / 3600.0
        return (
            f"node {self.node} is emptied to be given back: {' and '.join(gangs)} "
            f"({hours:.2g} GPU hours of work are done again)"
        )


@dataclass(frozen=True, slots=True)
class _Occupied:
    """A node whose gangs may all move."""

    pool: Pool
    name: str
    movers: tuple[MoveCandidate, ...]

    @property
    def price(self) -> float:
        return sum(mover.price for mover in self.movers)


def emptying(
    cluster: Cluster,
    pools: Sequence[Pool],
    now: float,
    *,
    needed: Collection[str],
    pods: Callable[[str], Collection[tuple[str, str]]],
) -> Emptying | None:
    """Return the node that is emptied next; None where none is to be.

    *pods* returns namespace and name of what runs on a node, of any scheduler; *needed* are nodes
    that are kept for what waits.
    """
    if not in_use(cluster) or not _quiet(cluster, pools):
        return None
    found = [
        one
        for pool in pools
        if pool.size > pool.object.spec.min
        for name in pool.names.values()
        if name not in needed and (one := _occupied(cluster, pool, name, pods(name), now))
    ]
    found.sort(key=attrgetter("price", "name"))
    idle = {name for pool in pools for name in pool.names.values() if not pods(name)}
    for one in found[:TRIED]:
        moves = _places(cluster, one, {one.name, *idle})
        if moves is not None:
            return Emptying(one.pool.name, one.name, moves, one.price)
    return None


def in_use(cluster: Cluster) -> bool:
    """Return whether any queue lets its gangs move."""
    return any(queue.spec.defragmentation for queue in cluster.ledger.specs.values())


def _quiet(cluster: Cluster, pools: Iterable[Pool]) -> bool:
    """Return whether no node comes or goes, and nothing waits for room."""
    if cluster.nominations or any(pool.requests or pool.leaving or pool.blocked for pool in pools):
        return False
    return not any(map(_waits, cluster.workloads.values()))


def _waits(workload: Workload) -> bool:
    """Return whether a workload may wait for room; of a new one it is not known yet."""
    if workload.over or workload.failed or not any(group.need for group in workload.pod_groups):
        return False
    reason = "" if workload.gang is None else workload.gang.status.reason
    return not reason or reason in ROOM_REASONS


def _occupied(
    cluster: Cluster, pool: Pool, name: str, pods: Collection[tuple[str, str]], now: float
) -> _Occupied | None:
    """Return a node with the gangs on it; None where it is idle, or one of them is to stay."""
    row = cluster.table.rows.get(name)
    there = [member for member in cluster.on_node(name) if member.key in pods]
    if row is None or not pods or len(there) != len(pods):
        return None
    movers = list(_movers(cluster, there, now))
    allowance = Allowance(cluster.budgets)
    keys = {member.workload for member in there}
    if len(movers) != len(keys) or any(allowance.spend(mover.members) for mover in movers):
        return None
    offered = pool.object.spec.template.capacity
    worth = max(quantity.to_int(offered.get(names.GPU, 0)), len(there))
    saved = worth * min(_cool_down(cluster, mover) for mover in movers)
    one = _Occupied(pool, name, tuple(movers))
    return one if one.price < saved else None


def _movers(cluster: Cluster, there: Iterable[Member], now: float) -> Iterator[MoveCandidate]:
    """Yield the gangs of pods whose queues' policies let them move now."""
    for key in sorted({member.workload for member in there if member.workload is not None}):
        workload = cluster.workloads.get(key)
        policy = None if workload is None else _policy(cluster, workload.queue)
        if workload is None or policy is None:
            continue
        rest = duration.parse(policy.cool_down)
        mover = whole_gang(cluster, workload, costs=COSTS, now=now, rest=rest)
        if mover is not None and mover.price <= duration.parse(policy.max_price):
            yield mover


def _policy(cluster: Cluster, queue: str) -> DefragmentationPolicy | None:
    return defragmentation(cluster.ledger.specs, queue)


def _cool_down(cluster: Cluster, mover: MoveCandidate) -> float:
    """Return for how long a gang that moved stays where it is: so long its old node is saved."""
    policy = _policy(cluster, mover.workload.queue)
    return duration.parse(policy.cool_down) if policy is not None else 0.0


def _places(
    cluster: Cluster, one: _Occupied, shut: Collection[str]
) -> dict[WorkloadKey, tuple[str, ...]] | None:
    """Return where the gangs of a node go without the nodes *shut*; None where one has no place."""
    state = WhatIf(cluster, [member for mover in one.movers for member in mover.members])
    rows: BoolArray = state.table.live.copy()
    rows[[state.table.rows[name] for name in shut if name in state.table.rows]] = False
    found = {}
    for mover in sorted(one.movers, key=lambda mover: (-mover.gpus, mover.key)):
        placement = state.place(mover.workload, waiting_again(cluster, mover), rows)
        if placement is None:
            return None
        state.settle(placement, mover.workload.queue)
        found[mover.key] = tuple(sorted({spot.spot.node for spot in placement.assignments}))
    return found
