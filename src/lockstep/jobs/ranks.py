"""Ranks that ended while their pods go on: the first rung of recovery.

They start anew where they are, in the next generation of the world. An error that comes again
without a step in between is the program's own: the job stops and shows it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import structs

from lockstep.api.rendezvous import Ended, Report
from lockstep.api.training import LastError, TrainingJob, TrainingJobStatus
from lockstep.health.core.exits import FOR_MEMORY, PERMANENT_EXIT_CODES, in_words, last_line
from lockstep.jobs import conditions as cond
from lockstep.jobs import failures

OWN: Final = ("user", "software", "unknown")
"""Classes of faults that may be the program's own."""
UNKNOWN: Final = -1
"""In place of a number of steps that no rank tells."""


def lost(told: Mapping[str, Report], generation: int) -> tuple[str, Ended] | None:
    """Return the pod and the end of the first rank that failed in *generation*, if one did.

    The others fail for want of it.
    """
    found = [
        (name, report.ended)
        for name, report in told.items()
        if report.generation == generation and report.state == "Failed" and report.ended
    ]
    return min(found, key=lambda pair: pair[1].at, default=None)


def judge(
    job: TrainingJob,
    status: TrainingJobStatus,
    failed: tuple[str, Ended],
    told: Mapping[str, Report],
    now: float,
) -> TrainingJobStatus:
    """Return the status after a rank *failed*: failed for good, or the next generation.

    The diagnosis of *status* is that of this failure.
    """
    ended, why = failed[1], words(failed)
    if known := PERMANENT_EXIT_CODES.get(ended.code):
        return failures.fail(status, "PermanentError", f"{why}: {known}", now)
    step = max((r.step for r in told.values() if r.step is not None), default=UNKNOWN)
    error = LastError(error=describe(ended), step=step)
    early = now - (cond.since(status, cond.RUNNING, True) or now) < failures.STABLE_AFTER
    blamed = status.diagnosis is None or status.diagnosis.class_ in OWN
    if _again(status.last_error, error, ended, unseen=early and blamed):
        text = f"{why}; the same error twice without a step in between"
        return failures.fail(status, "SameErrorTwice", text, now)
    most = job.spec.recovery.max_restarts
    if status.restarts >= most:
        used = f"{why}; all restarts are used up ({most} of {most})"
        return failures.fail(status, "RestartsUsedUp", used, now)
    status = failures.count(status, why, now)
    status = failures.regroup(structs.replace(status, last_error=error))
    return cond.put(status, cond.RESTARTING, True, cond.Why("RanksAnew", why), now)


def words(failed: tuple[str, Ended]) -> str:
    """Return which rank of which pod failed, and how."""
    name, ended = failed
    return f"{name}: rank {ended.rank} {describe(ended)}"


def _again(before: LastError | None, error: LastError, ended: Ended, *, unseen: bool) -> bool:
    """Say whether this is the error of last time, and nothing was done in between.

    A rank that is killed from outside made no error. Where no step is told, *unseen* says whether
    none was made: the ranks ended early, and by a fault that may be the program's own.
    """
    if before is None or not ended.code or before.error != error.error:
        return False
    return unseen if error.step == UNKNOWN else error.step <= before.step


def describe(ended: Ended) -> str:
    """Return how a rank ended, the same for the same error."""
    how = in_words(ended.code, ended.signal)
    if ended.oom:
        return f"{how}, {FOR_MEMORY}"
    return f"{how}{last_line(ended.signal, ended.line)}"
