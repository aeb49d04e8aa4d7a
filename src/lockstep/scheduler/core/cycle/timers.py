"""The waits of the cycle: what is waited for, for how long, and since when."""

from __future__ import annotations

from typing import NamedTuple

from lockstep.scheduler.core.cycle.result import CycleResult
from lockstep.scheduler.core.model.decisions import Rollback
from lockstep.scheduler.core.model.workload import Workload, WorkloadKey


class Wait(NamedTuple):
    """Something that is waited for, and the seconds after which it is not any more."""

    what: str
    seconds: float


ARRIVAL = Wait("more pods of an elastic gang", 0.5)
"""A gang's pods are made one by one. A gang that starts with the first few has its place chosen for
those; the rest would have to take what is left around them, or nothing."""
REQUEUE = Wait("victims that are made again", 1.0)
TENTATIVE = Wait("decisions that settle", 1.0)
ROLLBACK = Wait("the rest of a half-placed gang", 10.0)


class Timers:
    """Since when each wait lasts: one of a single workload, or of the whole cycle (no key)."""

    def __init__(self) -> None:
        self._running: dict[tuple[Wait, WorkloadKey | None], tuple[int, float]] = {}

    def start(
        self, wait: Wait, now: float, key: WorkloadKey | None = None, *, size: int = 0
    ) -> float:
        """Let a wait go on, or begin where there is none or its *size* has grown; return the Unix
        time at which it is over.
        """
        before, since = self._running.get((wait, key), (0, now))
        if size > before:
            since = now
        self._running[wait, key] = size, since
        return since + wait.seconds

    def stop(self, wait: Wait, key: WorkloadKey | None = None) -> None:
        """End a wait: it begins anew when it is started again."""
        self._running.pop((wait, key), None)

    def until(self, wait: Wait, now: float) -> float | None:
        """Return when a wait of the whole cycle is over; None where it does not last now."""
        running = self._running.get((wait, None))
        if running is None:
            return None
        _, since = running
        return since + wait.seconds if since <= now < since + wait.seconds else None


def arrival_until(timers: Timers, workload: Workload, now: float) -> float | None:
    """Return the Unix time until which more pods of a gang are waited for; None: not at all."""
    if not _incomplete(workload):
        timers.stop(ARRIVAL, workload.key)
        return None
    number = sum(pod_group.total for pod_group in workload.pod_groups)
    until = timers.start(ARRIVAL, now, workload.key, size=number)
    return until if now < until else None


def _incomplete(workload: Workload) -> bool:
    """Return whether nothing of a gang stands, and it has fewer pods than it would start with."""
    wanted = [(pod_group.group.desired, pod_group) for pod_group in workload.pod_groups]
    if not any(desired and pod_group.total < desired for desired, pod_group in wanted):
        return False
    return not workload.bound


def roll_back_in_time(timers: Timers, workload: Workload, now: float, result: CycleResult) -> None:
    """Roll back a gang that has just found no place for the rest, if that lasts too long."""
    if workload.half_placed:
        due = timers.start(ROLLBACK, now, workload.key)
        if now < due:
            result.wake(due)
            return
        result.rollbacks.append(Rollback(workload.key, tuple(workload.bound)))
    timers.stop(ROLLBACK, workload.key)
