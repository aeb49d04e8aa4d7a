"""The gang that others move for next: first one asked for, then one due by policy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lockstep.api.queue import DefragmentationPolicy
from lockstep.scheduler.core.cycle.pending_queue import PendingQueue
from lockstep.scheduler.core.defrag.defragmenter import Defragmenter, Look
from lockstep.scheduler.core.defrag.migration import Rearrangement
from lockstep.scheduler.core.defrag.policy_trigger import PolicyTrigger
from lockstep.scheduler.core.model.workload import Workload, WorkloadKey
from lockstep.scheduler.core.placement.problem import Problem
from lockstep.scheduler.core.reservations.book import ReservationBook


@dataclass(frozen=True, slots=True)
class Chance:
    """A gang for which others may move now."""

    look: Look
    policy: DefragmentationPolicy | None
    """The policy by which it is due; None where a user asked for it."""


class DefragStep:
    """Chooses one gang at a time, and only while nothing else is being moved."""

    def __init__(
        self, defragmenter: Defragmenter, book: ReservationBook, due: PolicyTrigger
    ) -> None:
        self._defragmenter = defragmenter
        self._book = book
        self._due = due
        self.wake_at: float | None = None
        """When to look again even if nothing happens."""

    def next(
        self,
        line: PendingQueue,
        now: float,
        left_out: Callable[[WorkloadKey], bool],
        problem_of: Callable[[Workload], Problem | None],
    ) -> Chance | None:
        """Return the gang to look at next, if there is one; none of those that are *left_out*."""
        self.wake_at = self._defragmenter.wake_at()
        if not self._defragmenter.idle:
            return None
        for workload in self._defragmenter.requested():
            problem = None if left_out(workload.key) else problem_of(workload)
            if problem is not None:
                return Chance(self._look(workload, problem, now), None)
        if not self._due.in_use:
            return None
        found = self._due.first((key for key in line.all() if not left_out(key)), now)
        self.wake_at = self._due.wake_at
        if found is None:
            return None
        workload, policy = found
        problem = problem_of(workload)
        return Chance(self._look(workload, problem, now), policy) if problem is not None else None

    def take(self, chance: Chance) -> Rearrangement | None:
        """Return the rearrangement for a gang; None where none is possible, or allowed."""
        if chance.policy is None:
            return self._defragmenter.answer(chance.look)
        return self._defragmenter.by_policy(chance.look, chance.policy)

    def _look(self, workload: Workload, problem: Problem, now: float) -> Look:
        exempt = self._book.bypass.exempt(workload, now)
        return Look(workload, problem, now, () if exempt else self._book.nodes())
