"""How a TrainJob is doing, in the Trainer's words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from lockstep.api.core import AnyObject
from lockstep.api.validation import Problem
from lockstep.api.wire import Json
from lockstep.compat.jobset.status import status_of as set_status
from lockstep.compat.native import condition, job_of, since
from lockstep.compat.translation import Native

_TOLD: Final = {
    "Succeeded": ("Complete", "JobsCompleted"),
    "Failed": ("Failed", "JobsFailed"),
}


def status_of(obj: AnyObject, natives: Sequence[Native], wrong: Sequence[Problem]) -> Json:
    """Return the status of *obj*, of which *natives* were made."""
    job, born = job_of(natives), obj.metadata.creation_timestamp or ""
    conditions = []
    if wrong:
        text = "; and ".join(str(one) for one in wrong)
        conditions.append(condition("Failed" if job is None else "Refused", "Refused", text, born))
    if job is None:
        return {"conditions": conditions} if conditions else {}
    if obj.spec.get("suspend") is not None:
        stopped = since(job, "Suspended")
        reason = "Suspended" if stopped else "Resumed"
        text, is_so = f"TrainJob is {reason.lower()}", bool(stopped)
        conditions.append(condition("Suspended", reason, text, stopped or born, value=is_so))
    for type_, (name, reason) in _TOLD.items():
        if moment := since(job, type_):
            conditions.append(condition(name, reason, job.status.message, moment))
    jobs = set_status(obj, natives, ()).get("replicatedJobsStatus", [])
    # The nodes of MPI are workers behind the door.
    shown = [{**one, "name": "node" if one["name"] == "worker" else one["name"]} for one in jobs]
    return {"conditions": conditions, "jobsStatus": shown}


def ended(obj: AnyObject) -> bool:
    """Say whether the job is over."""
    return any(
        c.get("type") in ("Complete", "Failed") and c.get("reason") != "Refused"
        for c in obj.status.get("conditions") or ()
    )
