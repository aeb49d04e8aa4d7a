"""Whose turn it is that others move for it: who was asked for first, then who is due by policy."""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass

from lockstep.api.queue import DefragmentationPolicy
from lockstep.scheduler.core.backfill import Backfill
from lockstep.scheduler.core.defrag.defragmenter import Defragmenter, Look
from lockstep.scheduler.core.defrag.due import Due
from lockstep.scheduler.core.defrag.rearrangement import Rearrangement
from lockstep.scheduler.core.line import Line
from lockstep.scheduler.core.problem import Problem
from lockstep.scheduler.core.units import Unit, UnitKey


@dataclass(frozen=True, slots=True)
class Chance:
    """A gang for which others may move now."""

    look: Look
    policy: DefragmentationPolicy | None
    """The policy by which it is due; None where somebody asked for it."""


class Turn:
    """Chooses one gang at a time, and only while nothing else is being moved."""

    def __init__(self, defragmenter: Defragmenter, backfill: Backfill, due: Due) -> None:
        self._defragmenter = defragmenter
        self._backfill = backfill
        self._due = due
        self.wake_at: float | None = None
        """When to look again even if nothing happens."""

    def next(
        self,
        line: Line,
        now: float,
        busy: Container[UnitKey],
        problem_of: Callable[[Unit], Problem | None],
    ) -> Chance | None:
        """Return the gang to look at next, if there is one."""
        self.wake_at = self._defragmenter.wake_at()
        if not self._defragmenter.idle:
            return None
        for unit in self._defragmenter.requested():
            problem = problem_of(unit) if unit.key not in busy else None
            if problem is not None:
                return Chance(self._look(unit, problem, now), None)
        if not self._due.in_use:
            return None
        found = self._due.first((key for key in line.all() if key not in busy), now)
        self.wake_at = self._due.wake_at
        if found is None:
            return None
        unit, policy = found
        problem = problem_of(unit)
        return Chance(self._look(unit, problem, now), policy) if problem is not None else None

    def take(self, chance: Chance) -> Rearrangement | None:
        """Return the rearrangement for a gang; None where none is possible, or allowed."""
        if chance.policy is None:
            return self._defragmenter.answer(chance.look)
        return self._defragmenter.by_policy(chance.look, chance.policy)

    def _look(self, unit: Unit, problem: Problem, now: float) -> Look:
        exempt = self._backfill.exempt(unit, now)
        return Look(unit, problem, now, () if exempt else self._backfill.nodes())
