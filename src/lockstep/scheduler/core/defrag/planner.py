"""Which gangs move, where they then stand, and where the waiting one does.

A plan is tried whole before it counts: on a copy of the cluster without those that move, the
waiting gang is placed first and each of them after it, by the search that places everything, and
within all quotas. The cheapest are moved first. The shortest beginning of the order of prices that
makes room is found by halving; of it, from the dearest on, what is not in the way stays. Then
every choice of gangs and of single members that costs less is tried, the cheapest first, as far as
a number of tries goes: up to it the plan is the cheapest there is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import inf

from lockstep.scheduler.core.defrag.candidates import MoveCandidate, together
from lockstep.scheduler.core.model.decisions import Placement
from lockstep.scheduler.core.model.workload import Member, Workload, WorkloadKey
from lockstep.scheduler.core.placement.problem import Problem, problem_again
from lockstep.scheduler.core.placement.what_if import WhatIf
from lockstep.scheduler.core.preemption.victim_search import VictimSearch
from lockstep.scheduler.core.state.cluster import Cluster
from lockstep.scheduler.core.util.cheapest_first import cheapest_first

MOST_MOVES = 64
"""Moves in one plan; one that takes more is not made."""
FEW_MOVES = 16
"""Moves up to which it is tried for each whether the others alone would do."""
TRIES = 64
"""Cheaper choices that are looked at once there is a plan; or any, where none was found."""


@dataclass(frozen=True, slots=True)
class Move:
    """A gang that moves, and where it then stands."""

    mover: MoveCandidate
    placement: Placement

    @property
    def before(self) -> Counter[str]:
        """Return the nodes of its pods now."""
        return Counter(member.node for member in self.mover.members)

    @property
    def after(self) -> Counter[str]:
        """Return the nodes of its pods then."""
        return Counter(one.spot.node for one in self.placement.assignments)


@dataclass(frozen=True, slots=True)
class MovePlan:
    """What lets a gang start; carried out, every gang in it stands."""

    workload: WorkloadKey
    placement: Placement
    moves: tuple[Move, ...]

    @property
    def price(self) -> float:
        """Return the GPU-seconds of work that are thrown away."""
        return sum(move.mover.price for move in self.moves)


class MovePlanner:
    """Looks for the plan of one gang at one moment."""

    def __init__(
        self, cluster: Cluster, workload: Workload, problem: Problem, leaving: Sequence[Member]
    ) -> None:
        self._cluster = cluster
        self._workload = workload
        # No gang has to move for members that the gang can do without.
        self._problem = problem.least
        self._leaving = leaving
        self._problems: dict[tuple[WorkloadKey, tuple[str, ...]], Problem] = {}

    def fits(self) -> bool:
        """Return whether the gang has room already, or will have without the leaving pods."""
        return self._room(()) is not None

    def find(self, movers: Sequence[MoveCandidate]) -> MovePlan | None:
        """Return the plan by which some of *movers*, the cheapest first, make room.

        None where moving all of them would not, where they would find no place themselves as far
        as was tried, or where so many would have to move that no plan is made.
        """
        state = self._without(())
        search = VictimSearch(
            state,
            (mover.members for mover in movers),
            lambda: state.place(self._workload, self._problem),
        )
        found = search.shortest(1)
        if found is None:
            return None
        plan = self._first(movers, found[0])
        return self._cheaper(movers, plan.price if plan is not None else inf) or plan

    def _first(self, movers: Sequence[MoveCandidate], size: int) -> MovePlan | None:
        """Return the plan of the shortest beginning of *movers* of which there is one, as long as
        *size* or longer.
        """
        while (plan := self._of_beginning(movers[:size])) is None:
            if size == len(movers):
                return None
            size = min(2 * size, len(movers))
        return self._thrifty(plan)

    def _cheaper(self, movers: Sequence[MoveCandidate], price: float) -> MovePlan | None:
        """Return a plan below a price, of the cheapest choice of which there is one."""
        for cost, choice in islice(cheapest_first(movers), TRIES):
            if cost >= price:
                break
            if self._room(choice) is not None and (plan := self._of_beginning(choice)):
                return self._thrifty(plan)
        return None

    def _without(self, movers: Sequence[MoveCandidate]) -> WhatIf:
        gone = (member for mover in together(movers) for member in mover.members)
        return WhatIf(self._cluster, [*self._leaving, *gone])

    def _room(self, movers: Sequence[MoveCandidate]) -> Placement | None:
        return self._without(movers).place(self._workload, self._problem)

    def _of_beginning(self, movers: Sequence[MoveCandidate]) -> MovePlan | None:
        """Return a plan by which some of *movers* move: those in the way, or else all of them."""
        for chosen in (self._in_the_way(movers), together(movers)):
            if len(chosen) <= MOST_MOVES and (plan := self._carried_out(chosen)) is not None:
                return plan
        return None

    def _in_the_way(self, movers: Sequence[MoveCandidate]) -> list[MoveCandidate]:
        """Return those whose room the waiting gang takes; the dearest are spared first."""
        state = self._without(movers)
        placement = state.place(self._workload, self._problem)
        if placement is None:
            return list(movers)
        state.settle(placement, self._workload.queue)
        taken = {one.spot.node for one in placement.assignments}
        near = [one for one in movers if any(m.node in taken for m in one.members)]
        kept: dict[WorkloadKey, MoveCandidate] = {}
        parts = {mover.key: set(mover.members) for mover in near if mover.stays}
        for mover in reversed(near):
            if mover.key in kept:
                continue
            if not mover.stays:
                part = parts.get(mover.key, set())
                if not self._stay(state, [m for m in mover.members if m not in part]):
                    kept[mover.key] = mover
            elif moving := [m for m in mover.members if not self._stay(state, [m])]:
                kept[mover.key] = mover.only(moving)
        return [*kept.values()][::-1]

    def _stay(self, state: WhatIf, members: Sequence[Member]) -> bool:
        """Suppose that pods are there again if they fit beside what is placed; return whether."""
        rows = [state.table.rows[member.node] for member in members]
        before, present = state.table.free[:, rows].copy(), state.mark()
        state.restore(members)
        after = state.table.free[:, rows]
        short = ((after < 0) & (after < before)).any()
        if short:
            state.rollback(present)
        return not short

    def _thrifty(self, plan: MovePlan) -> MovePlan:
        """Return the plan without the moves that it does not need."""
        while True:
            idle = [move.mover for move in plan.moves if move.before == move.after]
            fewer = self._sparing(plan, idle) if idle else None
            if fewer is None:
                break
            plan = fewer
        if len(plan.moves) <= FEW_MOVES:
            dearest = sorted(plan.moves, key=lambda m: m.mover.order, reverse=True)
            for move in dearest if len(plan.moves) > 1 else ():
                plan = self._sparing(plan, [move.mover]) or plan
        return plan

    def _sparing(self, plan: MovePlan, spared: Sequence[MoveCandidate]) -> MovePlan | None:
        keys = {mover.key for mover in spared}
        return self._carried_out([m.mover for m in plan.moves if m.mover.key not in keys])

    def _carried_out(self, movers: Sequence[MoveCandidate]) -> MovePlan | None:
        """Return where all gangs stand when just these move; None where one does not."""
        if not movers:
            return None
        state = self._without(movers)
        wanted = self._settled(state, self._workload, self._problem)
        if wanted is None:
            return None
        moves = []
        for mover in sorted(movers, key=lambda mover: (-mover.gpus, mover.key)):
            placement = self._settled(state, mover.workload, self._again(mover))
            if placement is None:
                return None
            moves.append(Move(mover, placement))
        return MovePlan(self._workload.key, wanted, tuple(moves))

    def _settled(self, state: WhatIf, workload: Workload, problem: Problem) -> Placement | None:
        """Return where a workload goes, and suppose that it stands and is counted there."""
        placement = state.place(workload, problem)
        if placement is not None:
            state.settle(placement, workload.queue)
        return placement

    def _again(self, mover: MoveCandidate) -> Problem:
        """Return what a gang asks for whose members that move wait again, all of them."""
        key = mover.key, tuple(member.name for member in mover.members)
        found = self._problems.get(key)
        if found is None:
            found = self._problems[key] = waiting_again(self._cluster, mover)
        return found


def waiting_again(cluster: Cluster, mover: MoveCandidate) -> Problem:
    """Return what a gang asks for whose members that move wait again, all of them."""
    found = problem_again(cluster, mover.workload, mover.members, others=bool(mover.stays))
    return replace(found, needs=found.wants)
