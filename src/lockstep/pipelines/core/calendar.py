"""What a CronWorkflow wants now: which workflow to make, which to delete, when to look again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from lockstep.api import timestamp
from lockstep.api.core import AnyObject
from lockstep.api.cron import BadSchedule, Schedule, parse
from lockstep.api.wire import Json
from lockstep.pipelines.core.makers import Wish, owner

CRON_LABEL: Final = "workflows.argoproj.io/cron-workflow"
"""Argo's own label: on a Workflow, the CronWorkflow that made it."""
_LATE: Final = 60.0
"""Seconds after which a time counts as missed where nothing else is said."""
_ENDED: Final = frozenset({"Succeeded", "Failed", "Error"})
_MOST_MISSED: Final = 1000


def wish(cron: AnyObject, made: Sequence[AnyObject], now: float) -> Wish:
    """Return what *cron* wants at *now*, of which the workflows *made* are there.

    A time that was missed by more than ``startingDeadlineSeconds`` (a minute by default) is passed
    over; of several the last counts.
    """
    spec = cron.spec
    active = [one for one in made if one.status.get("phase") not in _ENDED]
    kept = {key: cron.status[key] for key in cron.status if key not in ("active", "conditions")}
    status: Json = {**kept, "active": [_reference(one) for one in active]} if active else kept
    try:
        schedules = _schedules(spec)
        _all_served(spec)
    except BadSchedule as error:
        fault = {"type": "SpecError", "status": "True", "message": str(error)}
        return Wish(status={**status, "conditions": [fault]})
    old = _surplus(spec, made)
    if spec.get("suspend"):
        return Wish(delete=old, status=status)
    last = str(cron.status.get("lastScheduledTime") or cron.metadata.creation_timestamp or "")
    since = timestamp.parse(last) if last else now
    due = _last_due(schedules, since, now)
    again = min((t for s in schedules if (t := s.after(now)) is not None), default=None)
    if due is None:
        return Wish(delete=old, status=status, again=again)
    status["lastScheduledTime"] = timestamp.show(due)
    policy = spec.get("concurrencyPolicy", "Allow")
    late = now - due > float(spec.get("startingDeadlineSeconds") or _LATE)
    if late or (policy == "Forbid" and active):
        return Wish(delete=old, status=status, again=again)
    replaced = active if policy == "Replace" else []
    return Wish(_workflow(cron, due), [*old, *replaced], status, again=again)


def _all_served(spec: Json) -> None:
    for field in ("when", "stopStrategy"):
        if spec.get(field):
            raise BadSchedule(f"spec.{field} is not served by Lockstep; leave it out")


def _schedules(spec: Json) -> list[Schedule]:
    given = spec.get("schedules") or [spec.get("schedule") or ""]
    return [parse(str(one), str(spec.get("timezone") or "")) for one in given]


def _last_due(schedules: Sequence[Schedule], since: float, now: float) -> float | None:
    found = None
    for schedule in schedules:
        at: float | None = max(since, now - 7 * 86400.0)
        for _ in range(_MOST_MISSED):
            at = schedule.after(at) if at is not None else None
            if at is None or at > now:
                break
            found = at if found is None else max(found, at)
    return found


def _surplus(spec: Json, made: Sequence[AnyObject]) -> list[AnyObject]:
    """Return the oldest of those that are over, beyond what is kept of each end."""
    found: list[AnyObject] = []
    for good, field_, default in (
        (True, "successfulJobsHistoryLimit", 3),
        (False, "failedJobsHistoryLimit", 1),
    ):
        ended = [
            one
            for one in made
            if one.status.get("phase") in _ENDED
            and (one.status.get("phase") == "Succeeded") == good
        ]
        ended.sort(key=lambda one: str(one.status.get("finishedAt") or ""), reverse=True)
        limit = spec.get(field_)
        found += ended[int(default if limit is None else limit) :]
    return found


def _workflow(cron: AnyObject, due: float) -> Json:
    meta = cron.spec.get("workflowMetadata") or {}
    name = cron.metadata.name
    return {
        "metadata": {
            # The same name for the same time: it is made once, however often it is tried.
            "name": f"{name[:240]}-{int(due)}",
            "labels": {**(meta.get("labels") or {}), CRON_LABEL: name},
            "annotations": {
                **(meta.get("annotations") or {}),
                "workflows.argoproj.io/scheduled-time": timestamp.show(due),
            },
            "ownerReferences": [owner(cron, "argoproj.io/v1alpha1", "CronWorkflow")],
        },
        "spec": cron.spec.get("workflowSpec") or {},
    }


def _reference(one: AnyObject) -> Json:
    meta = one.metadata
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "name": meta.name,
        "namespace": meta.namespace,
        "uid": meta.uid,
    }
