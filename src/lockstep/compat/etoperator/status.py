"""How an elastic job is doing, in et-operator's words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from lockstep.api.core import AnyObject
from lockstep.api.validation import Problem
from lockstep.api.wire import Json
from lockstep.compat.etoperator.job import target
from lockstep.compat.native import condition, job_of, pods_by_role, since
from lockstep.compat.translation import Native

_TOLD: Final = ("Created", "Running", "Restarting", "Suspended", "Succeeded", "Failed")


def status_of(obj: AnyObject, natives: Sequence[Native], wrong: Sequence[Problem]) -> Json:
    """Return the status of *obj*, of which *natives* were made; who scales it stays as it is."""
    kept: Json = {k: obj.status[k] for k in ("targetWorkers", "currentScaler") if k in obj.status}
    job = job_of(natives)
    born = obj.metadata.creation_timestamp or ""
    if wrong:
        text = "; and ".join(str(one) for one in wrong)
        refused = condition("Refused", "Refused", text, born)
        return {**kept, "phase": "Failed", "conditions": [refused]}
    if job is None:
        return kept
    pods = pods_by_role(job)
    conditions = [
        condition(type_, f"TrainingJob{type_}", _message(type_, job.status.message), moment)
        for type_ in _TOLD
        if (moment := since(job, type_))
    ]
    workers = pods.get("worker", {})
    status: Json = {
        **kept,
        "phase": {"Pending": "Created", "Starting": "WorkersCreated"}.get(
            job.status.phase, job.status.phase
        ),
        "conditions": conditions,
        "restartCount": job.status.restarts,
        "replicaStatuses": {
            name.title(): {k: one[k] for k in ("active", "succeeded", "failed") if one[k]}
            for name, one in pods.items()
        },
    }
    if workers.get("ready") == len(target(obj)):
        status["currentWorkers"] = target(obj)
    for key, moment in (
        ("startTime", job.status.start_time),
        ("completionTime", job.status.completion_time),
    ):
        if moment:
            status[key] = moment
    return status


def ended(obj: AnyObject) -> bool:
    """Say whether the job is over."""
    return bool(obj.status.get("completionTime"))


def _message(type_: str, text: str) -> str:
    return text if type_ in ("Restarting", "Failed") else ""
