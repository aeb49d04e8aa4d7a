"""Jobs that a job comes after: it has no pods until all of them have succeeded.

A name stands for the job that has it; where there is none, for the jobs of the array of that name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, Protocol

from msgspec import structs

from lockstep.api.names import ARRAY_LABEL
from lockstep.api.training import TrainingJob, TrainingJobStatus
from lockstep.jobs import conditions as cond
from lockstep.jobs import failures
from lockstep.jobs.job_state import Decision, Seen


def held_back(seen: Seen, status: TrainingJobStatus, now: float) -> Decision | None:
    """Return what to do about a job that must wait for others; None when it may begin.

    Once its pods were created it does not look at the others again: they may be deleted.
    """
    if not seen.job.spec.after or cond.holds(status, cond.CREATED):
        return None
    others = {name: seen.awaited.get(name, ()) for name in seen.job.spec.after}
    failed = [one for jobs in others.values() for one in jobs if one.status.phase == "Failed"]
    if failed:
        why = f"job {failed[0].metadata.name}, which it was to come after, has failed"
        status = failures.fail(status, "DependencyFailed", why, now)
        return Decision(status, notes=cond.notes(seen.job.status, status))
    waits = [words for name, jobs in others.items() if (words := _waits(name, jobs))]
    if not waits:
        return None
    text = "waits for " + " and for ".join(waits)
    status = cond.put(status, cond.CREATED, False, cond.Why("WaitsForJobs", text), now)
    status = structs.replace(status, phase="Pending", message=text)
    return Decision(status, notes=cond.notes(seen.job.status, status))


def _waits(name: str, jobs: Iterable[TrainingJob]) -> str:
    """Return what of *name* is waited for; empty when all has succeeded."""
    there = list(jobs)
    if not there:
        return f"job {name}, which is not there"
    left = [one for one in there if one.status.phase != "Succeeded"]
    if not left:
        return ""
    first = left[0]
    phase = first.status.phase
    if len(there) == 1 and first.metadata.name == name:
        return f"job {name} to succeed: it is {phase}"
    return (
        f"{len(left)} of {len(there)} jobs of array {name} to succeed: "
        f"{first.metadata.name} is {phase}"
    )


class Jobs(Protocol):
    """The cache of jobs, with ``INDICES``."""

    def get(self, namespace: str, name: str) -> TrainingJob | None:
        """Return one job, if it is there."""

    def by_index(self, index: str, value: str) -> list[TrainingJob]:
        """Return the jobs that *index* holds under *value*."""


def others(jobs: Jobs, job: TrainingJob) -> dict[str, list[TrainingJob]]:
    """Return what each name stands for that *job* comes after."""
    return {name: _named(jobs, job.metadata.namespace, name) for name in job.spec.after}


def _named(jobs: Jobs, namespace: str, name: str) -> list[TrainingJob]:
    job = jobs.get(namespace, name)
    if job is not None:
        return [job]
    array = jobs.by_index(ARRAY_LABEL, f"{namespace}/{name}")
    return sorted(array, key=lambda one: (len(one.metadata.name), one.metadata.name))


def waiting_for(jobs: Jobs, job: TrainingJob) -> list[tuple[str, str]]:
    """Return namespace and name of the jobs that wait for *job*, or for the array of it."""
    meta = job.metadata
    said = {meta.name, meta.labels.get(ARRAY_LABEL, meta.name)}
    there = [one for name in said for one in jobs.by_index(_AFTER, f"{meta.namespace}/{name}")]
    return [(one.metadata.namespace, one.metadata.name) for one in there]


def _after(job: TrainingJob) -> Iterable[str]:
    return [f"{job.metadata.namespace}/{name}" for name in job.spec.after]


def _array(job: TrainingJob) -> Iterable[str]:
    array = job.metadata.labels.get(ARRAY_LABEL)
    return [f"{job.metadata.namespace}/{array}"] if array else []


_AFTER: Final = "lockstep.dev/after"
INDICES: Final[Mapping[str, Callable[[TrainingJob], Iterable[str]]]] = {
    _AFTER: _after,
    ARRAY_LABEL: _array,
}
"""By which the cache of jobs must find them: what they come after, and the array they belong to."""
