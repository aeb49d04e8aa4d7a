"""What a job's time went to: of its time in the system, how much made steps that count, by cause.

The status keeps the seconds of each cause up to the last change of it, so that it is written when
the cause changes and not otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import structs

from lockstep.api import timestamp
from lockstep.api.goodput import GoodputCause, spent
from lockstep.api.roles import launched
from lockstep.api.training import TrainingJobStatus
from lockstep.api.worlds import Report
from lockstep.jobs import conditions as cond
from lockstep.jobs import gathering
from lockstep.jobs.world import Seen


def cause(seen: Seen, status: TrainingJobStatus, told: Mapping[str, Report]) -> GoodputCause:
    """Return what *seen*'s job, which is neither suspended nor ended, spends its time on."""
    if not cond.holds(status, cond.PLACED):
        return "waiting"
    if not cond.holds(status, cond.RUNNING):
        return "starting"
    there = gathering.current(seen)
    present = [r for r in told.values() if r.generation == status.generation]
    if not launched(seen.job) or seen.job.spec.simulated:
        # Without launchers nothing is told: what runs counts.
        return "productive"
    if there is None or not present:
        return "starting"
    if any(rank.suspect for report in present for rank in report.ranks):
        return "hung"
    if not any(_stepped(report, there.resume or 0) for report in present):
        return "starting" if there.resume is None else "restoring"
    step = max((r.step for r in present if r.step is not None), default=None)
    return "recomputing" if step is not None and step < status.goodput.step else "productive"


def _stepped(report: Report, resumed: int) -> bool:
    """Say whether a rank has made a step in the present generation."""
    if any(rank.steps for rank in report.ranks):
        return True
    return report.step is not None and report.step > resumed


def follow(status: TrainingJobStatus, cause: GoodputCause, now: float) -> TrainingJobStatus:
    """Return *status* with *cause* from *now* on; the time until now is put to the one before."""
    known = status.goodput
    if known.cause == cause:
        return status
    seconds = {name: round(so_far, 1) for name, so_far in spent(known, now).items()}
    since = timestamp.show(now) if cause else None
    return structs.replace(
        status, goodput=structs.replace(known, cause=cause, since=since, seconds=seconds)
    )


def forgiven(status: TrainingJobStatus, told: Mapping[str, Report]) -> TrainingJobStatus:
    """Return *status* for a failure to come: the first in a row, if steps were finished before."""
    if _furthest(told) <= status.goodput.step:
        return status
    return structs.replace(status, failures_in_a_row=0)


def _furthest(told: Mapping[str, Report]) -> int:
    return max((report.step for report in told.values() if report.step is not None), default=-1)


def reached(status: TrainingJobStatus, told: Mapping[str, Report]) -> TrainingJobStatus:
    """Return *status* with how far the ranks had come, at the end of a generation."""
    best = max(status.goodput.step, _furthest(told))
    return structs.replace(status, goodput=structs.replace(status.goodput, step=best))
