"""For how long half a gang stands before it gives its nodes back."""

from __future__ import annotations

from lockstep.scheduler.core.round import Rollback, Round
from lockstep.scheduler.core.units import Unit, UnitKey

PATIENCE = 10.0
"""Seconds that a half-placed gang may take to be completed before it gives its nodes back."""


class Patience:
    """Since when half-placed gangs find no place for the rest."""

    def __init__(self) -> None:
        self._stuck_since: dict[UnitKey, float] = {}

    def forget(self, key: UnitKey) -> None:
        """Begin anew: the gang is complete, got more of its places, or is no more."""
        self._stuck_since.pop(key, None)

    def consider(self, unit: Unit, now: float, result: Round) -> None:
        """Roll back a gang that has just found no place for the rest, if that lasts too long."""
        if not unit.half_placed:
            self.forget(unit.key)
            return
        due = self._stuck_since.setdefault(unit.key, now) + PATIENCE
        if now < due:
            result.wake(due)
            return
        self.forget(unit.key)
        result.rollbacks.append(Rollback(unit.key, tuple(unit.bound)))
