"""How a Job is doing, as its own controller would say it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from lockstep.api.core import AnyObject
from lockstep.api.training import TrainingJob
from lockstep.api.validation import Problem
from lockstep.api.wire import Json
from lockstep.compat.native import condition, job_of, pods_by_role, since
from lockstep.compat.translation import Native

_condition: Final = partial(condition, also="lastProbeTime")

_ENDS: Final = {
    "Succeeded": (("SuccessCriteriaMet", "Complete"), "CompletionsReached"),
    "Failed": (("FailureTarget", "Failed"), "BackoffLimitExceeded"),
}
"""Our conditions at the end, and in Kubernetes' words: first it is decided, then it is so."""


def status_of(obj: AnyObject, natives: Sequence[Native], wrong: Sequence[Problem]) -> Json:
    """Return the status of *obj*, of which *natives* were made."""
    job = job_of(natives)
    born = obj.metadata.creation_timestamp or ""
    if job is None:
        if not wrong:
            return {}
        text = "; and ".join(str(one) for one in wrong)
        # Suspended: a Job that has failed could not be mended.
        return {"conditions": [_condition("Suspended", "Refused", text, born)]}
    (pods,) = pods_by_role(job).values()
    conditions = []
    if moment := since(job, "Suspended"):
        conditions.append(_condition("Suspended", "JobSuspended", "Job suspended", moment))
    for type_, (told, reason) in _ENDS.items():
        if moment := since(job, type_):
            text = job.status.message if type_ == "Failed" else "Reached expected number of pods"
            conditions += [_condition(name, reason, text, moment) for name in told]
    over = job.status.phase in _ENDS
    status: Json = {
        "conditions": conditions,
        "active": 0 if over else pods["active"],
        "ready": 0 if over else pods["ready"],
        "succeeded": pods["succeeded"],
        "failed": pods["failed"],
    }
    if not over:
        status["terminating"] = 0
    if job.status.start_time and not job.spec.suspend:
        status["startTime"] = job.status.start_time
    if job.status.phase == "Succeeded" and job.status.completion_time:
        status["completionTime"] = job.status.completion_time
    if obj.spec.get("completionMode") == "Indexed" and job.status.phase == "Succeeded":
        status["completedIndexes"] = _all(job)
    return status


def ended(obj: AnyObject) -> bool:
    """Say whether the job is over."""
    conditions = obj.status.get("conditions") or ()
    return any(c.get("type") in ("Complete", "Failed") for c in conditions)


def _all(job: TrainingJob) -> str:
    last = job.spec.roles[0].replicas - 1
    return f"0-{last}" if last > 1 else ",".join(str(i) for i in range(last + 1))
