"""Jobs that a job comes after: it has no pods until all of them have succeeded."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import structs

from lockstep.api.training import TrainingJob, TrainingJobStatus
from lockstep.jobs import conditions as cond
from lockstep.jobs import failures
from lockstep.jobs.world import Decision, Seen

AFTER_INDEX: Final = "lockstep.dev/after"


def held_back(seen: Seen, status: TrainingJobStatus, now: float) -> Decision | None:
    """Return what to do about a job that must wait for others; None when it may begin.

    Once its pods were created it does not look at the others again: they may be deleted.
    """
    if not seen.job.spec.after or cond.holds(status, cond.CREATED):
        return None
    failed = [name for name in seen.job.spec.after if _phase(seen, name) == "Failed"]
    if failed:
        why = f"job {failed[0]}, which it was to come after, has failed"
        status = failures.fail(status, "DependencyFailed", why, now)
        return Decision(status, notes=cond.notes(seen.job.status, status))
    waiting = [name for name in seen.job.spec.after if _phase(seen, name) != "Succeeded"]
    if not waiting:
        return None
    text = "waits for " + " and for ".join(_of_one(seen, name) for name in waiting)
    status = cond.put(status, cond.CREATED, False, cond.Why("WaitsForJobs", text), now)
    status = structs.replace(status, phase="Pending", message=text)
    return Decision(status, notes=cond.notes(seen.job.status, status))


def _phase(seen: Seen, name: str) -> str:
    other = seen.awaited.get(name)
    return "" if other is None else other.status.phase


def _of_one(seen: Seen, name: str) -> str:
    phase = _phase(seen, name)
    return f"job {name} to succeed: it is {phase}" if phase else f"job {name}, which is not there"


def index(job: TrainingJob) -> Iterable[str]:
    """Yield the jobs that *job* comes after, as ``namespace/name``."""
    return [f"{job.metadata.namespace}/{name}" for name in job.spec.after]
