"""Which nodes to get for the gangs that wait, in the order of their queues. Pure.

Gang by gang: what fits the nodes that are there or on their way needs none; for the others the
cheapest nodes are looked for that let all of the gang start. A gang that stands gets nodes for
those of its members beyond the minimum for which it says so, as many as there may be. Each gang
that is served takes its place before the next one is looked at, in the tables and in the accounts
of its queue, so that room, quota and budget are given out once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace

from lockstep.api import duration, timestamp
from lockstep.pools.core.budgets import QueueBudgets
from lockstep.pools.core.choice import Choice, Chooser, Room
from lockstep.pools.core.offers import Offers, Slot
from lockstep.pools.core.pool import Pool
from lockstep.scheduler.core.cycle.max_wait import deadline
from lockstep.scheduler.core.cycle.pending_queue import PendingQueue, equivalence_class
from lockstep.scheduler.core.cycle.queue_order import QueueOrder
from lockstep.scheduler.core.model.decisions import Placement
from lockstep.scheduler.core.model.workload import Workload, WorkloadKey
from lockstep.scheduler.core.packing.packing import Quota
from lockstep.scheduler.core.placement import admission
from lockstep.scheduler.core.placement.problem import Problem, ProblemCache
from lockstep.scheduler.core.state.cluster import Cluster

ROOM_REASONS = frozenset(
    {"NoNodes", "NoNodeMatches", "TooLargeForNodes", "NotEnoughRoom", "NoDomain", "NotAlignable"}
)
"""Reasons of waiting that more nodes may change."""


@dataclass(frozen=True, slots=True)
class Purchase:
    """Nodes of one pool to get for one workload; for the pool's minimum it is None."""

    pool: str
    slots: tuple[int, ...]
    workload: Workload | None


@dataclass(slots=True)
class Growth:
    """What to get, and why nothing is got for the others."""

    purchases: list[Purchase] = field(default_factory=list)
    shared: dict[WorkloadKey, set[Slot]] = field(default_factory=dict)
    """By workload the slots of pools, on their way or there, on which it has a place."""
    needed: set[str] = field(default_factory=set)
    """Nodes of pools on which what waits has a place: they are not to be given back."""
    refused: dict[WorkloadKey, str] = field(default_factory=dict)
    """Why no pool helps a workload that waits for room."""


def grow(
    cluster: Cluster,
    pools: Sequence[Pool],
    now: float,
    *,
    judged: bool = False,
    busy: Collection[WorkloadKey] = (),
) -> Growth:
    """Return which nodes to get now; the cluster is as before when it returns.

    With *judged* only gangs are looked at of which the scheduler has said that they wait for room.
    Those in *busy* are left alone.
    """
    found, touched = Growth(), set(cluster.touched)
    with Offers(cluster) as offers:
        planner = _Planner(cluster, pools, offers, now, found, judged=judged, busy=busy)
        try:
            planner.plan()
        finally:
            planner.undo()
    cluster.touched = touched
    return found


class _Planner:
    def __init__(
        self,
        cluster: Cluster,
        pools: Sequence[Pool],
        offers: Offers,
        now: float,
        found: Growth,
        *,
        judged: bool,
        busy: Collection[WorkloadKey],
    ) -> None:
        self._cluster = cluster
        self._pools = pools
        self._offers = offers
        self._now = now
        self._found = found
        self._judged = judged
        self._busy = busy
        self._problems = ProblemCache(cluster)
        self._there: list[Slot] = []
        """Hypothetical slots that count as there: on their way, or got in this look."""
        self._standing: dict[str, Slot] = {
            name: (pool.name, slot) for pool in pools for slot, name in pool.names.items()
        }
        self._taken: dict[str, set[int]] = {pool.name: set() for pool in pools}
        self._placed: list[Placement] = []
        self._chooser = Chooser(cluster, offers)
        self._budgets = QueueBudgets(cluster, pools, offers)

    def plan(self) -> None:
        """Look at each workload in its turn."""
        for pool in self._pools:
            self._offers.add(pool, pool.coming)
            self._there += [(pool.name, slot) for slot in sorted(pool.coming)]
        self._reach_minimum()
        line = PendingQueue(self._cluster, self._class)
        for key in self._cluster.workloads:
            line.update(key)
        for key in QueueOrder(line, self._cluster, self._problems.of):
            if self._serve(self._cluster.workloads[key]):
                line.drop(key)
            else:
                line.shut(key)
                line.drop(key)

    def undo(self) -> None:
        """Take all places back."""
        for placement in reversed(self._placed):
            self._cluster.retract([(one.member.key, one.spot) for one in placement.assignments])

    def _class(self, workload: Workload) -> object:
        return equivalence_class(self._cluster, workload, self._problems.of(workload))

    def _reach_minimum(self) -> None:
        for pool in self._pools:
            lacks = min(pool.object.spec.min - pool.size, pool.affordable())
            if lacks > 0 and not self._rests(pool):
                slots = pool.free_slots()[:lacks]
                self._take(pool, slots, None)

    def _serve(self, workload: Workload) -> bool:
        """Give a workload its place, on new nodes if it must; return whether it has one."""
        problem = self._problems.of(workload)
        if problem is None or workload.key in self._busy or self._served_otherwise(workload):
            return True
        if not any(quota.need for quota in problem.needs):
            self._extend(workload, problem)
            return True
        problem = problem.least
        placement = self._place(workload, problem)
        if placement is not None:
            self._settle(workload, placement)
            return True
        if self._judged and not self._waits_for_room(workload):
            return True
        if admission.over_quota(self._cluster, workload, problem) is not None:
            return False
        return self._buy(workload, problem)

    def _buy(self, workload: Workload, problem: Problem) -> bool:
        """Get the nodes that let a workload start; return whether there are such."""
        chosen = self._choose(workload, problem)
        if chosen is None:
            return False
        if refusal := self._budgets.refusal(workload, chosen.slots):
            self._found.refused[workload.key] = refusal
            return False
        for pool, slots in chosen.slots:
            self._take(pool, slots, workload)
        self._settle(workload, chosen.placement)
        return True

    def _extend(self, workload: Workload, problem: Problem) -> None:
        """Get nodes for members that a workload which stands can do without; half where not all."""
        for quotas in _beyond(workload, problem):
            wanted = replace(problem, needs=quotas)
            placement = self._place(workload, wanted)
            if placement is not None:
                self._settle(workload, placement)
                return
            if admission.over_quota(self._cluster, workload, wanted) is None and self._buy(
                workload, wanted
            ):
                self._found.refused.pop(workload.key, None)
                return

    def _place(self, workload: Workload, problem: Problem) -> Placement | None:
        rows = self._offers.mask(self._there)
        return admission.place(self._cluster, workload, problem, rows)

    def _served_otherwise(self, workload: Workload) -> bool:
        """Return whether room is being made for a workload, by others that leave."""
        return bool(workload.nominated) or workload.key in self._cluster.nominations

    def _waits_for_room(self, workload: Workload) -> bool:
        gang = workload.gang
        return gang is None or gang.status.reason in ROOM_REASONS

    def _rests(self, pool: Pool) -> bool:
        until = pool.rests_until()
        return until is not None and until > self._now

    def _choose(self, workload: Workload, problem: Problem) -> Choice | None:
        open_, why = [], []
        for pool in self._pools:
            reason = self._barred(pool, workload)
            if reason:
                why.append(f"{pool.name}: {reason}")
            else:
                open_.append(pool)
        left = {p.name: p.affordable() - len(self._taken[p.name]) for p in open_}
        room = Room(open_, left, self._there, self._taken)
        chosen, more = self._chooser.choose(workload, problem, room)
        if chosen is None:
            self._found.refused[workload.key] = "; ".join([*why, *more])
        return chosen

    def _barred(self, pool: Pool, workload: Workload) -> str:
        """Return why a pool is not asked for a workload; empty where it may be."""
        if self._rests(pool):
            told = pool.object.status
            return f"left alone until {told.retry_at} after {told.reason or 'a failure'}"
        if pool.affordable() <= len(self._taken[pool.name]):
            spec = pool.object.spec
            if pool.size + len(self._taken[pool.name]) >= spec.max:
                return f"has all of its {spec.max} nodes"
            return f"its hourlyBudget of {spec.hourly_budget:g} is spent"
        there = self._now + pool.arrival
        ends = deadline(workload)
        if ends is not None and ends <= there:
            return f"its nodes take {duration.show(pool.arrival)}, and the gang gives up before"
        status = workload.gang.status if workload.gang is not None else None
        starts = timestamp.read(status.estimated_start) if status is not None else None
        if starts is not None and self._now < starts <= there:
            return f"its nodes take {duration.show(pool.arrival)}, and it starts before by itself"
        return ""

    def _take(self, pool: Pool, slots: Sequence[int], workload: Workload | None) -> None:
        self._offers.add(pool, slots)
        self._there += [(pool.name, slot) for slot in slots]
        self._taken[pool.name].update(slots)
        self._found.purchases.append(Purchase(pool.name, tuple(slots), workload))

    def _settle(self, workload: Workload, placement: Placement) -> None:
        """Let a workload stand where it was placed, until all is taken back."""
        decided = [(one.member.key, one.spot) for one in placement.assignments]
        self._placed.append(placement)
        self._cluster.assume(decided)
        for node in {one.spot.node for one in placement.assignments}:
            slot = self._offers.slot(node) or self._standing.get(node)
            if slot is not None:
                self._found.shared.setdefault(workload.key, set()).add(slot)
            if node in self._standing:
                self._found.needed.add(node)


def _beyond(workload: Workload, problem: Problem) -> Iterator[list[Quota]]:
    """Yield the members to get nodes for beyond the minimum: all of them, half, and so on to one.

    A gang whose ranks are placed in bundles of several pods gets none: one part of a bundle is no
    use.
    """
    groups = workload.pod_groups
    if len(groups) != len(problem.needs) or any(bundle > 1 for bundle in problem.bundles):
        return
    counts = [group.want if group.group.provisioned else 0 for group in groups]
    while any(counts):
        yield [Quota(count, count) for count in counts]
        counts = [count // 2 for count in counts]
