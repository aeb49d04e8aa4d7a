"""A more important workload gets the place that is being freed for a less important one of its
queue.

No further pod has to go for it. Why that cannot go round in circles either is told in ADR 0053: the
workload must be secured at least as deep in the tree as the one whose place it takes over.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from lockstep.scheduler.core.model.decisions import Placement
from lockstep.scheduler.core.model.workload import Member, Workload, WorkloadKey
from lockstep.scheduler.core.placement import admission
from lockstep.scheduler.core.placement.problem import Problem
from lockstep.scheduler.core.placement.what_if import WhatIf
from lockstep.scheduler.core.preemption.reclaim_claims import claims
from lockstep.scheduler.core.preemption.victim_policy import VictimPolicy
from lockstep.scheduler.core.quota.account import Amounts
from lockstep.scheduler.core.quota.supposed import Supposed
from lockstep.scheduler.core.state.cluster import Cluster
from lockstep.scheduler.core.state.nominations import Nomination
from lockstep.scheduler.core.util.array_types import BoolArray


def weaker(cluster: Cluster, workload: Workload) -> list[Nomination]:
    """Return the nominations in a workload's queue that are less important, the least one first.

    Places that belong to a plan of moves are left out: a gang that moves has nowhere to go back to.
    """
    priority = cluster.priorities.of(workload)
    found = []
    for nomination in cluster.nominations:
        other = cluster.workloads.get(nomination.workload)
        if (
            other is None
            or nomination.queue != workload.queue
            or nomination.purpose != "Preempting"
        ):
            continue
        if cluster.priorities.of(other) < priority:
            found.append((cluster.priorities.of(other), nomination.workload, nomination))
    return [nomination for _, _, nomination in sorted(found, key=lambda one: one[:2])]


def place_after(
    cluster: Cluster,
    workload: Workload,
    problem: Problem,
    leaving: Sequence[Member],
    rows: BoolArray | None = None,
) -> Placement | None:
    """Return where a workload stands, within all limits, once the leaving pods have left.

    It is on some *rows* alone where they are given, and nowhere that is kept for others.
    """
    return WhatIf(cluster, leaving).place(workload, problem, rows)


class Takeover:
    """What one workload may take over, at one moment."""

    def __init__(self, cluster: Cluster, workload: Workload, problem: Problem) -> None:
        self._cluster = cluster
        self._workload = workload
        self._problem = problem.least
        self._account = cluster.ledger.account(workload.queue)

    def find(self, leaving: Sequence[Member]) -> tuple[list[Nomination], Placement] | None:
        """Return whose places to take over and where the workload stands then; None: of no use.

        One that will do is taken alone, else the least important of them together.
        """
        if not self._cluster.priorities.may_preempt(self._workload) or not self._account.preempts:
            return None
        nominations = weaker(self._cluster, self._workload)
        theirs = {one.workload: self._depth(one.workload, one.asked) for one in nominations}
        for claim in claims(self._cluster, self._workload, self._problem) if nominations else ():
            mine = self._depth(self._workload.key, claim.asked)
            allowed = [one for one in nominations if mine <= theirs[one.workload]]
            together = [allowed[: number + 1] for number in range(1, len(allowed))]
            for chosen in [*([one] for one in allowed), *together]:
                placement = self._place(chosen, leaving, claim.problem)
                if placement is not None and self._secured_like(
                    placement, min(theirs[one.workload] for one in chosen)
                ):
                    return chosen, placement
        return None

    def _secured_like(self, placement: Placement, most: int) -> bool:
        """Return whether the workload is secured as deep as need be there, by what it counts
        for.
        """
        counted = admission.counted(self._cluster, placement)
        return self._depth(self._workload.key, counted) <= most

    def _depth(self, key: WorkloadKey, asked: Amounts) -> int:
        """Return in how many queues, from its own outwards, a workload would not be secured."""
        priority = self._cluster.priorities.of(self._cluster.workloads[key])
        return VictimPolicy(self._cluster, self._account, priority, asked, may=True).unsecured()

    def _place(
        self, chosen: Sequence[Nomination], leaving: Sequence[Member], problem: Problem
    ) -> Placement | None:
        """Return where the workload would stand without these nominations, within all limits."""
        with Supposed(self._cluster.ledger) as world:
            for one in chosen:
                world.apply(partial(self._cluster.nominations.hold, one), -1)
            return place_after(self._cluster, self._workload, problem, leaving)
