"""What a workload loses with its place: the work that it has not saved."""

from __future__ import annotations

from math import inf

from lockstep.api import checkpoint, duration
from lockstep.scheduler.core.model.workload import Workload


def last_saved(workload: Workload) -> float | None:
    """Return the Unix time at which the workload's work was last saved; None where that
    is not stated.
    """
    if workload.gang is None:
        return None
    return checkpoint.last(workload.gang.metadata.annotations, workload.gang.status.last_checkpoint)


def checkpointed(workload: Workload) -> bool:
    """Return whether the workload says that it saves its work, or when it did."""
    stated = workload.gang is not None and workload.gang.spec.checkpoint is not None
    return stated or last_saved(workload) is not None


def lost_work(workload: Workload, since: float, now: float) -> float:
    """Return the seconds of work that end with its place, which it has had *since*.

    That is the work since it was last saved; where no time is stated, at most what the workload
    promises to save within."""
    saved = last_saved(workload)
    if saved is not None:
        return max(0.0, now - max(saved, since))
    stated = workload.gang.spec.checkpoint if workload.gang is not None else None
    most = inf if stated is None or stated.interval is None else duration.parse(stated.interval)
    return min(max(0.0, now - since), most)
