"""A more important unit gets the place that is being freed for a less important one of its queue.

Nobody more has to go for it. Why that cannot go round in circles either is told in ADR 0053: the
unit must be secured at least as deep in the tree as the one whose place it takes over.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace

from lockstep.scheduler.core.arrays import BoolArray
from lockstep.scheduler.core.cluster import Cluster
from lockstep.scheduler.core.packing import Quota
from lockstep.scheduler.core.placement import Placement
from lockstep.scheduler.core.preemption.claims import claims
from lockstep.scheduler.core.preemption.nominations import Nomination
from lockstep.scheduler.core.preemption.rights import Rights
from lockstep.scheduler.core.preemption.supposition import Supposition
from lockstep.scheduler.core.problem import Problem
from lockstep.scheduler.core.queues import admission
from lockstep.scheduler.core.queues.account import Amounts
from lockstep.scheduler.core.units import Member, Unit, UnitKey


def weaker(cluster: Cluster, unit: Unit) -> list[Nomination]:
    """Return the nominations in a unit's queue that are less important, the least one first.

    Places that belong to a plan of moves are left out: who moves has nowhere to go back to.
    """
    priority = cluster.priorities.of(unit)
    found = []
    for nomination in cluster.nominations:
        other = cluster.units.get(nomination.unit)
        if other is None or nomination.queue != unit.queue or nomination.purpose != "Preempting":
            continue
        if cluster.priorities.of(other) < priority:
            found.append((cluster.priorities.of(other), nomination.unit, nomination))
    return [nomination for _, _, nomination in sorted(found, key=lambda one: one[:2])]


def least(problem: Problem) -> Problem:
    """Return a problem without the members that the unit can do without."""
    if not problem.elastic:
        return problem
    return replace(problem, needs=[Quota(q.need, q.need) for q in problem.needs])


def place_after(
    cluster: Cluster,
    unit: Unit,
    problem: Problem,
    leaving: Sequence[Member],
    rows: BoolArray | None = None,
) -> Placement | None:
    """Return where a unit stands, within all limits, once those have left who are leaving.

    It is on some *rows* alone where they are given, and nowhere that is kept for others.
    """
    state = Supposition(cluster, leaving)
    with cluster.ledger.without([m for m in leaving if m.account is not None]):
        return admission.place(cluster, unit, problem, rows, state=state)


class Takeover:
    """What one unit may take over, at one moment."""

    def __init__(self, cluster: Cluster, unit: Unit, problem: Problem) -> None:
        self._cluster = cluster
        self._unit = unit
        self._problem = least(problem)
        self._account = cluster.ledger.account(unit.queue)

    def find(self, leaving: Sequence[Member]) -> tuple[list[Nomination], Placement] | None:
        """Return whose places to take over and where the unit stands then; None: of no use.

        One that will do is taken alone, else the least important of them together.
        """
        if not self._cluster.priorities.may_preempt(self._unit) or not self._account.preempts:
            return None
        nominations = weaker(self._cluster, self._unit)
        theirs = {one.unit: self._depth(one.unit, one.asked) for one in nominations}
        for claim in claims(self._cluster, self._unit, self._problem) if nominations else ():
            mine = self._depth(self._unit.key, claim.asked)
            allowed = [one for one in nominations if mine <= theirs[one.unit]]
            together = [allowed[: number + 1] for number in range(1, len(allowed))]
            for chosen in [*([one] for one in allowed), *together]:
                placement = self._place(chosen, leaving, claim.problem)
                if placement is not None and self._secured_like(
                    placement, min(theirs[one.unit] for one in chosen)
                ):
                    return chosen, placement
        return None

    def _secured_like(self, placement: Placement, most: int) -> bool:
        """Return whether the unit is secured as deep as need be there, by what it counts for."""
        counted = admission.counted(self._cluster, placement)
        return self._depth(self._unit.key, counted) <= most

    def _depth(self, key: UnitKey, asked: Amounts) -> int:
        """Return in how many queues, from its own outwards, a unit would not be secured."""
        priority = self._cluster.priorities.of(self._cluster.units[key])
        return Rights(self._cluster, self._account, priority, asked, may=True).unsecured()

    def _place(
        self, chosen: Sequence[Nomination], leaving: Sequence[Member], problem: Problem
    ) -> Placement | None:
        """Return where the unit would stand without these nominations, within all limits."""
        with ExitStack() as stack:
            for one in chosen:
                stack.enter_context(self._cluster.nominations.suspended(one.unit))
            return place_after(self._cluster, self._unit, problem, leaving)
