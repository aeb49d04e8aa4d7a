"""For how long half a gang stands before it gives its nodes back."""

from __future__ import annotations

from lockstep.scheduler.core.cycle.result import CycleResult
from lockstep.scheduler.core.model.decisions import Rollback
from lockstep.scheduler.core.model.workload import Workload, WorkloadKey

ROLLBACK_SECONDS = 10.0
"""Seconds that a half-placed gang may take to be completed before it gives its nodes back."""


class RollbackTimer:
    """Since when half-placed gangs find no place for the rest."""

    def __init__(self) -> None:
        self._stuck_since: dict[WorkloadKey, float] = {}

    def forget(self, key: WorkloadKey) -> None:
        """Begin anew: the gang is complete, got more of its places, or is no more."""
        self._stuck_since.pop(key, None)

    def consider(self, workload: Workload, now: float, result: CycleResult) -> None:
        """Roll back a gang that has just found no place for the rest, if that lasts too long."""
        if not workload.half_placed:
            self.forget(workload.key)
            return
        due = self._stuck_since.setdefault(workload.key, now) + ROLLBACK_SECONDS
        if now < due:
            result.wake(due)
            return
        self.forget(workload.key)
        result.rollbacks.append(Rollback(workload.key, tuple(workload.bound)))
