"""The earliest time at which a workload has room and quota, by the run times that are stated."""

from __future__ import annotations

from bisect import bisect_right
from contextlib import nullcontext
from dataclasses import dataclass
from math import ceil

from lockstep.scheduler.core.model.decisions import Placement
from lockstep.scheduler.core.model.workload import Member, Workload
from lockstep.scheduler.core.placement import admission
from lockstep.scheduler.core.placement.problem import Problem
from lockstep.scheduler.core.placement.what_if import WhatIf
from lockstep.scheduler.core.reservations.quota_timeline import QuotaTimeline
from lockstep.scheduler.core.reservations.reserved_nodes import end_of
from lockstep.scheduler.core.state.cluster import Cluster


@dataclass(frozen=True, slots=True)
class EarliestStart:
    """When a workload can start, and where it would be placed then."""

    at: int
    """Unix time, in whole seconds."""
    placement: Placement

    @property
    def place(self) -> dict[Member, str]:
        """Return by pod its node."""
        return {one.member: one.spot.node for one in self.placement.assignments}


def earliest_start(
    cluster: Cluster,
    workload: Workload,
    problem: Problem,
    now: float,
    *,
    later: QuotaTimeline | None = None,
    first: float | None = None,
) -> EarliestStart | None:
    """Find by halving after how many of the stated ends the workload fits; None: not even after
    all.

    Nothing before *first* is looked at; that time itself is the likeliest.
    """
    by_end: dict[float, list[Member]] = {time: [] for time in later.times} if later else {}
    for member in cluster.pods.values():
        end = end_of(cluster, member) if member.holds else None
        if end is not None and end > now:
            by_end.setdefault(end, []).append(member)
    ends = sorted(by_end)
    state, there = WhatIf(cluster, cluster.leaving.values()), 0

    def placed(many: int) -> Placement | None:
        nonlocal there
        for end in ends[many:there]:
            state.restore(by_end[end])
        for end in ends[there:many]:
            state.vacate(by_end[end])
        there = many
        at = ceil(ends[many - 1] if many else now)
        with later.then(at) if later is not None else nullcontext():
            return admission.place(cluster, workload, problem, state=state)

    low, high, placement = 0, len(ends), None
    if first is not None:
        low = high = bisect_right(ends, first)
        placement = placed(low)
    if placement is None:
        high = len(ends)
        placement = placed(high)
    if placement is None:
        return None
    while low < high:
        middle = (low + high) // 2
        found = placed(middle)
        if found is None:
            low = middle + 1
        else:
            high, placement = middle, found
    return EarliestStart(ceil(ends[high - 1] if high else now), placement)


def earliest_start_by_quota(
    cluster: Cluster, workload: Workload, problem: Problem, now: float, later: QuotaTimeline
) -> EarliestStart | None:
    """Find when a workload has quota, and room by then as far as that is known: it is not kept."""
    first = later.first(admission.asked(cluster, problem), now)
    if first is None:
        return None
    with later.then(ceil(first)):
        placement = admission.place(cluster, workload, problem)
    if placement is not None:
        return EarliestStart(ceil(first), placement)
    return earliest_start(cluster, workload, problem, now, later=later, first=first)
