"""How a JobSet is doing, in its own words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from lockstep.api.core import AnyObject
from lockstep.api.validation import Problem
from lockstep.api.wire import Json
from lockstep.compat.native import condition, job_of, pods_by_role, since
from lockstep.compat.translation import Native

_TOLD: Final = {
    "Suspended": ("Suspended", "SuspendedJobs"),
    "Succeeded": ("Completed", "AllJobsCompleted"),
    "Failed": ("Failed", "FailedJobs"),
}


def status_of(obj: AnyObject, natives: Sequence[Native], wrong: Sequence[Problem]) -> Json:
    """Return the status of *obj*, of which *natives* were made."""
    job = job_of(natives)
    born = obj.metadata.creation_timestamp or ""
    conditions = []
    if wrong:
        text = "; and ".join(str(one) for one in wrong)
        conditions.append(condition("Refused", "Refused", text, born))
    if job is None:
        return {"conditions": conditions} if conditions else {}
    for type_, (told, reason) in _TOLD.items():
        if moment := since(job, type_):
            conditions.append(condition(told, reason, job.status.message, moment))
    status: Json = {
        "conditions": conditions,
        "restarts": job.status.restarts,
        "restartsCountTowardsMax": job.status.restarts,
        "replicatedJobsStatus": [],
    }
    ends = {"Succeeded": "Completed", "Failed": "Failed"}
    if terminal := ends.get(job.status.phase):
        status["terminalState"] = terminal
    for role in job.spec.roles:
        pods, size = pods_by_role(job)[role.name], role.identity.block or 1
        told_of = {
            "name": role.name,
            "ready": (pods["ready"] + pods["succeeded"]) // size,
            "active": -(-pods["active"] // size),
            "succeeded": pods["succeeded"] // size,
            "failed": -(-pods["failed"] // size),
            "suspended": role.replicas // size if job.spec.suspend else 0,
        }
        status["replicatedJobsStatus"].append(told_of)
    return status


def ended(obj: AnyObject) -> bool:
    """Say whether the JobSet is over."""
    return bool(obj.status.get("terminalState"))
