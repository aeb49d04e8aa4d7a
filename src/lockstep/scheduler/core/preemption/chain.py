"""What a preemption costs in the end: it is carried through until no gang moves any more.

Gangs that lose their place wait again, and may take the place of others in turn. All of it is
played in one hypothetical world: there the gangs are tried in order, each with the rights and by
the planner that it would have, and what they hold counts in the queues. The world is taken back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lockstep.scheduler.core.model.decisions import Placement
from lockstep.scheduler.core.model.workload import Member, Workload, WorkloadKey
from lockstep.scheduler.core.placement.preconditions import unmet_precondition
from lockstep.scheduler.core.placement.problem import Problem, problem_again, problem_of
from lockstep.scheduler.core.placement.what_if import WhatIf
from lockstep.scheduler.core.preemption.budgeted_victims import Victim
from lockstep.scheduler.core.state.cluster import Cluster
from lockstep.scheduler.core.state.disruption_budgets import Budget

STEPS = 24
"""Gangs that are tried in one chain; what follows after that is not priced."""
FEW = 64
"""Workloads up to which those that wait already are played too."""
DEPTH = 3
"""Links of a chain for which it is looked for more than one plan."""


class Price(NamedTuple):
    """What a plan costs when no gang moves any more; the smaller one wins."""

    broken: int
    """PodDisruptionBudgets that are violated."""
    left_out: float
    """The priority of the most important gang that lost its place and found none; that of the least
    important possible victim where that is higher."""
    lost: float
    """GPU-seconds of work that are done again."""
    gangs: int
    """Gangs that lose their whole place."""


class Effort:
    """How many more searches for a place may be spent on comparing plans."""

    def __init__(self, searches: int) -> None:
        self._left = searches

    def spend(self) -> bool:
        """Take one more search; return whether there was one left."""
        self._left -= 1
        return self._left >= 0


@dataclass(frozen=True, slots=True)
class Draft:
    """Victims that make room for a workload, and where it then stands."""

    placement: Placement
    victims: tuple[Victim, ...]

    @property
    def members(self) -> tuple[Member, ...]:
        """Return the pods that go."""
        return tuple(member for victim in self.victims for member in victim.members)

    @property
    def broken(self) -> tuple[Budget, ...]:
        """Return the PodDisruptionBudgets that do not allow it."""
        return tuple(dict.fromkeys(one for victim in self.victims for one in victim.violates))


PlannerOf = Callable[[Workload, Problem, Sequence[Member], int], Draft | None]
"""Plans for a workload in the world of the chain, with pods that budgets miss, at a depth; the
world is as before then."""


class Chain:
    """One plan and what follows from it."""

    def __init__(
        self, cluster: Cluster, world: WhatIf, planner_of: PlannerOf, gone: Iterable[Member]
    ) -> None:
        self._cluster = cluster
        self._world = world
        self._planner_of = planner_of
        self._missing = {member.key: member for member in gone}
        """Pods that went before or go now and do not stand again: budgets miss them."""
        self._broken: set[Budget] = set()
        self._lost, self._gangs = 0.0, 0
        self._over: list[int] = []
        """Priorities of pods that are gone for good."""
        self._waiting: dict[WorkloadKey, tuple[Workload, Problem]] = {}
        """Gangs that lost their place, and what they ask for now."""

    def price(self, workload: Workload, draft: Draft, depth: int, least: float) -> Price:
        """Return what a plan costs in the end; the world, from which its victims have not gone
        yet, is as before. *least* is the priority of the least important possible victim.
        """
        present = self._world.mark()
        try:
            self._carry_out(workload, draft)
            out = self._follow(depth + 1) if depth < DEPTH else self._waiting.keys()
        finally:
            self._world.rollback(present)
        priorities = [self._cluster.priorities.of(self._cluster.workloads[key]) for key in out]
        left_out = max([least, *self._over, *priorities])
        return Price(len(self._broken), left_out, round(self._lost, 3), self._gangs)

    def _carry_out(self, workload: Workload, draft: Draft) -> list[WorkloadKey]:
        """Let the victims go and the workload stand; return the gangs that wait again."""
        members = draft.members
        self._world.vacate(members)
        self._world.leave(members)
        self._stand(workload, draft.placement)
        self._broken.update(draft.broken)
        self._missing |= {member.key: member for member in members}
        self._lost += sum(victim.lost for victim in draft.victims)
        back = []
        for victim in [one for one in draft.victims if one.whole]:
            self._gangs, key = self._gangs + 1, victim.key
            there = self._cluster.workloads.get(key)
            if there is None:  # a pod of its own does not come back
                self._over.append(victim.priority)
            else:
                lost = [m for one in draft.victims if one.key == key for m in one.members]
                self._waiting[key] = there, problem_again(self._cluster, there, lost).least
                back.append(key)
        return back

    def _stand(self, workload: Workload, placement: Placement) -> None:
        self._world.stand(workload, placement)
        for one in placement.assignments:
            self._missing.pop(one.member.key, None)

    def _follow(self, depth: int) -> set[WorkloadKey]:
        """Let gangs move until none does; return those that lost their place and found none."""
        pending = self._sorted(self._waiting | self._others())
        out: set[WorkloadKey] = set()
        for _ in range(STEPS):
            if not pending:
                break
            key, (workload, problem) = pending.pop(0)
            placement = self._world.place(workload, problem)
            if placement is not None:
                self._stand(workload, placement)
                continue
            gone = tuple(self._missing.values())
            draft = self._planner_of(workload, problem, gone, depth)
            if draft is None:
                out |= {key} & self._waiting.keys()
                continue
            again = {*self._carry_out(workload, draft), *out}
            pending = self._sorted(dict(pending) | {k: self._waiting[k] for k in again})
            out.clear()
        return out | ({key for key, _ in pending} & self._waiting.keys())

    def _others(self) -> dict[WorkloadKey, tuple[Workload, Problem]]:
        """Return what waits already, as far as it is few."""
        there, ledger = self._cluster.workloads, self._cluster.ledger
        if len(there) > FEW or not self._waiting:
            return {}
        return {
            key: (one, problem_of(self._cluster, one).least)
            for key, one in there.items()
            if one.open
            and not one.bound
            and key not in ledger.account(one.queue).holding
            and key not in self._cluster.nominations
            and unmet_precondition(self._cluster, one) is None
        }

    def _sorted(
        self, waiting: dict[WorkloadKey, tuple[Workload, Problem]]
    ) -> list[tuple[WorkloadKey, tuple[Workload, Problem]]]:
        of = self._cluster.priorities.of
        return sorted(
            waiting.items(), key=lambda one: (-of(one[1][0]), one[1][0].queued_at, one[0])
        )
