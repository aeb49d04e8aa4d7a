"""How a job is doing, in Volcano's words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from lockstep.api.core import AnyObject
from lockstep.api.training import TrainingJob
from lockstep.api.validation import Problem
from lockstep.api.wire import Json
from lockstep.compat.native import job_of, pods_by_role
from lockstep.compat.translation import Native

PHASES: Final = {
    "Pending": "Pending",
    "Starting": "Pending",
    "Running": "Running",
    "Restarting": "Restarting",
    "Suspended": "Aborted",
    "Succeeded": "Completed",
    "Failed": "Failed",
    "Deleting": "Terminating",
}


def status_of(obj: AnyObject, natives: Sequence[Native], wrong: Sequence[Problem]) -> Json:
    """Return the status of *obj*, of which *natives* were made."""
    born = obj.metadata.creation_timestamp or ""
    job = job_of(natives)
    if job is None:
        text = "; and ".join(str(one) for one in wrong)
        phase, reason = ("Failed", "Refused") if wrong else ("Pending", "")
        return {"state": _state(phase, reason, text, born)}
    pods = pods_by_role(job)
    counted = {name: sum(one[name] for one in pods.values()) for name in ("succeeded", "failed")}
    running = sum(one["ready"] for one in pods.values())
    active = sum(one["active"] for one in pods.values())
    message = "; and ".join(str(one) for one in wrong) or _message(job)
    spec = obj.spec
    total = sum(role.replicas for role in job.spec.roles)
    return {
        "state": _state(PHASES[job.status.phase], "", message, _changed(job) or born),
        "minAvailable": spec.get("minAvailable") or total,
        "pending": active - running,
        "running": running,
        "retryCount": job.status.restarts,
        **counted,
        "taskStatusCount": {name: {"phase": _phases(one)} for name, one in pods.items()},
    }


def ended(obj: AnyObject) -> bool:
    """Say whether the job is over."""
    state = obj.status.get("state")
    reason = state.get("reason") if isinstance(state, dict) else ""
    phase = state.get("phase") if isinstance(state, dict) else ""
    return phase in ("Completed", "Failed") and reason != "Refused"


def _state(phase: str, reason: str, message: str, since: str) -> Json:
    told = {"phase": phase, "reason": reason, "message": message, "lastTransitionTime": since}
    return {key: value for key, value in told.items() if value}


def _message(job: TrainingJob) -> str:
    return job.status.message if job.status.phase in ("Failed", "Restarting") else ""


def _changed(job: TrainingJob) -> str:
    """Return when one of the job's conditions last changed."""
    return max((c.last_transition_time for c in job.status.conditions), default="")


def _phases(pods: dict[str, int]) -> dict[str, int]:
    told = {
        "Running": pods["ready"],
        "Pending": pods["active"] - pods["ready"],
        "Succeeded": pods["succeeded"],
        "Failed": pods["failed"],
    }
    return {phase: number for phase, number in told.items() if number}
