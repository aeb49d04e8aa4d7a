"""How a job is doing, in Kubeflow's words."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from lockstep.api.core import AnyObject
from lockstep.api.meta import Condition
from lockstep.api.training import TrainingJob
from lockstep.api.validation import Problem
from lockstep.api.wire import Json
from lockstep.compat.kubeflow.jobs import PREFIX
from lockstep.compat.native import condition
from lockstep.compat.translation import Native

_condition: Final = partial(condition, also="lastUpdateTime")

_TOLD: Final = {
    "Running": "is running.",
    "Restarting": "is restarting",
    "Suspended": "is suspended.",
    "Succeeded": "is successfully completed.",
    "Failed": "has failed",
}
"""Our conditions that Kubeflow has as well, in the order in which it lists them."""


_REFUSED: Final = frozenset({"InvalidSpec", "Refused"})
"""Why our job has no pods; else they are being made, or wait for another job."""
_TYPES: Final = {"ps": "PS"}
"""Types of replicas that are written otherwise than with one capital."""


def status_of(obj: AnyObject, natives: Sequence[Native], wrong: Sequence[Problem]) -> Json:
    """Return the status of *obj*, of which *natives* were made."""
    kind = obj.kind
    job = next((one for one in natives if isinstance(one, TrainingJob)), None)
    born = obj.metadata.creation_timestamp or ""
    name = f"{kind} {obj.metadata.name}"
    conditions = [_condition("Created", f"{kind}Created", f"{name} is created.", born)]
    if wrong:
        text = f"{name} cannot be served: {'; and '.join(str(one) for one in wrong)}"
        refused = "Refused" if job is not None else "Failed"
        conditions.append(_condition(refused, f"{kind}FailedValidation", text, born))
    if job is None:
        return {"conditions": conditions}
    conditions += [_told(kind, name, one) for one in _known(job)]
    created = next((c for c in job.status.conditions if c.type == "Created"), None)
    if created is not None and created.status == "False" and created.reason in _REFUSED:
        conditions.append(
            _condition(
                "Failed",
                f"{kind}FailedValidation",
                created.message,
                created.last_transition_time,
            )
        )
    status: Json = {"conditions": conditions, "replicaStatuses": _replicas(kind, job)}
    for key, time in (
        ("startTime", job.status.start_time),
        ("completionTime", job.status.completion_time),
    ):
        if time is not None:
            status[key] = time
    return status


def ended(obj: AnyObject) -> bool:
    """Say whether the job is over."""
    return bool(obj.status.get("completionTime"))


def _known(job: TrainingJob) -> list[Condition]:
    found = {c.type: c for c in job.status.conditions}
    return [found[type_] for type_ in _TOLD if type_ in found]


def _told(kind: str, name: str, one: Condition) -> Json:
    text = f"{name} {_TOLD[one.type]}"
    if one.message and one.type in ("Restarting", "Failed"):
        text = f"{text}: {one.message}"
    reason = f"{kind}{one.type}"
    is_so, since = one.status == "True", one.last_transition_time
    return _condition(one.type, reason, text, since, value=is_so)


def _replicas(kind: str, job: TrainingJob) -> Json:
    found: Json = {}
    for role in job.spec.roles:
        told = job.status.replica_statuses.get(role.name)
        selector = {
            "job-name": job.metadata.name,
            "operator-name": f"{kind.lower()}-controller",
            "replica-type": role.name,
        }
        counts = (
            {"active": told.active, "succeeded": told.succeeded, "failed": told.failed}
            if told is not None
            else {}
        )
        found[_TYPES.get(role.name, role.name.title())] = {
            **{key: value for key, value in counts.items() if value},
            "selector": ",".join(f"{PREFIX}{key}={value}" for key, value in selector.items()),
        }
    return found
