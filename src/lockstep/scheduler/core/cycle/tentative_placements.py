"""Starts that are decided on, and held back until no further pod has to leave at that moment.

What is placed counts as placed at once, but is not told so before the decisions have settled. Until
then its place can go to a workload that may take it: it has not started, so no pod is evicted.
Why that comes to an end is told in ADR 0075.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from lockstep.scheduler.core.cycle.result import CycleResult
from lockstep.scheduler.core.cycle.timers import TENTATIVE, Timers
from lockstep.scheduler.core.model.decisions import Assignment, Placement
from lockstep.scheduler.core.model.workload import Member, WorkloadKey
from lockstep.scheduler.core.state.cluster import Cluster


class TentativePlacements:
    """The placements that have not been told yet."""

    def __init__(self, cluster: Cluster, timers: Timers) -> None:
        self._cluster = cluster
        self._timers = timers
        self._held: dict[WorkloadKey, Placement] = {}
        self._grows = False

    def __contains__(self, key: object) -> bool:
        return key in self._held

    def __bool__(self) -> bool:
        return bool(self._held)

    def hold(self, placement: Placement, now: float, *, grows: bool = False) -> None:
        """Hold back a placement that is counted in the state already.

        A workload that *grows* stands where it was planned, and is asked next for the members
        above."""
        if not self._held:
            self._timers.stop(TENTATIVE)
            self._timers.start(TENTATIVE, now)
        self._grows |= grows
        earlier = self._held.get(placement.workload)
        before = earlier.assignments if earlier is not None else ()
        self._held[placement.workload] = replace(
            placement, assignments=before + placement.assignments
        )
        for one in placement.assignments:
            one.member.tentative = True

    def review(self) -> None:
        """Let those wait again that cannot start any more: a pod or a node of theirs has gone."""
        for placement in list(self._held.values()):
            if not all(map(self._possible, placement.assignments)):
                self.take_back([one.member for one in placement.assignments])

    def _possible(self, one: Assignment) -> bool:
        there = self._cluster.pods.get(one.member.key)
        return (
            there is not None
            and (there.uid, there.node) == (one.member.uid, one.spot.node)
            and there.node in self._cluster.table.rows
        )

    def take_back(self, members: Iterable[Member]) -> None:
        """Let members wait again whose place another workload gets."""
        gone: dict[WorkloadKey | None, set[Member]] = {}
        for member in members:
            gone.setdefault(member.workload, set()).add(member)
        for placement in [one for one in self._held.values() if one.workload in gone]:
            lost = gone[placement.workload]
            self._cluster.retract(
                [(a.member.key, a.spot) for a in placement.assignments if a.member in lost]
            )
            left = tuple(a for a in placement.assignments if a.member not in lost)
            if left:
                self._held[placement.workload] = replace(placement, assignments=left)
            else:
                del self._held[placement.workload]
            for member in lost:
                member.tentative, member.since = False, None
            self._cluster.freed += 1

    def hand_out(
        self, result: CycleResult, now: float, *, settled: bool, waits: float | None = None
    ) -> None:
        """Put what is held back into a round's result, unless a workload may still lose it.

        That may be until the decisions have *settled*, or while gangs that come back are waited for
        (until the Unix time *waits*): what is theirs may be among it.
        """
        settled, self._grows = settled and not self._grows, False
        if not self._held:
            return
        until = self._timers.until(TENTATIVE, now)
        if until is not None:
            if not settled:
                result.more = True
                return
            if waits is not None:
                result.wake(min(waits, until))
                return
        result.placements += self._held.values()
        result.touched |= self._held.keys()
        for placement in self._held.values():
            for one in placement.assignments:
                one.member.tentative = False
        self._held = {}
