"""CronJobs: a Job at each time of a schedule."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

from lockstep.api import timestamp
from lockstep.api.core import AnyObject
from lockstep.api.cron import BadSchedule, Schedule, parse
from lockstep.api.wire import Json
from lockstep.runtime.actions import Create, Delete
from lockstep.workloads.core.plan import CRON_JOBS, JOBS, Plan, World, owner

TIME: Final = "batch.kubernetes.io/cronjob-scheduled-timestamp"


def decide(obj: AnyObject, world: World, now: float) -> Plan:
    """Return what the CronJob *obj* needs next."""
    active = [one for one in world.jobs if not _end(one)]
    plan = Plan(_status(obj, world, active))
    try:
        schedule = parse(str(obj.spec.get("schedule", "")), str(obj.spec.get("timeZone") or ""))
    except BadSchedule as error:
        plan.refused = f"spec.schedule: {error}"
        return plan
    if obj.metadata.deletion_timestamp is not None:
        return plan
    _tidy(obj, world, plan)
    if obj.spec.get("suspend"):
        return plan
    due = _due(obj, schedule, now)
    if (following := schedule.after(now)) is not None:
        plan.wait(max(0.05, following - now))
    if due is None:
        return plan
    policy = obj.spec.get("concurrencyPolicy", "Allow")
    if policy == "Forbid" and active:
        return plan
    if policy == "Replace":
        plan.actions += [Delete.of(JOBS, one.metadata) for one in active]
    body = _job(obj, due)
    plan.actions.append(Create(JOBS, body))
    plan.status["lastScheduleTime"] = timestamp.show(due)
    return plan


def _due(obj: AnyObject, schedule: Schedule, now: float) -> float | None:
    """Return the newest time that has come and has had no Job yet."""
    last = timestamp.read(obj.status.get("lastScheduleTime"))
    earliest = last or timestamp.read(obj.metadata.creation_timestamp) or now
    deadline = obj.spec.get("startingDeadlineSeconds")
    if deadline is not None:
        earliest = max(earliest, now - float(deadline))
    # A server that was off for a month need not walk through every minute of it.
    found = None
    for back in (3600.0, 86_400.0, 32 * 86_400.0, now - earliest):
        moment = schedule.after(max(earliest, now - back))
        while moment is not None and moment <= now:
            found = moment
            moment = schedule.after(moment)
        if found is not None or now - back <= earliest:
            return found
    return found


def _job(obj: AnyObject, due: float) -> Json:
    template: Json = obj.spec.get("jobTemplate") or {}
    meta = template.get("metadata") or {}
    zone = ZoneInfo(str(obj.spec.get("timeZone") or "UTC"))
    shown = datetime.fromtimestamp(due, zone).isoformat()
    if shown.endswith("+00:00"):
        shown = shown.removesuffix("+00:00") + "Z"
    metadata: dict[str, Any] = {
        "name": f"{obj.metadata.name}-{int(due) // 60}",
        "annotations": {**(meta.get("annotations") or {}), TIME: shown},
        "ownerReferences": [owner(CRON_JOBS, obj)],
    }
    if labels := meta.get("labels"):
        metadata["labels"] = labels
    return {
        "apiVersion": JOBS.api_version,
        "kind": JOBS.kind,
        "metadata": metadata,
        "spec": template.get("spec") or {},
    }


def _end(job: AnyObject) -> str:
    """Return how a Job ended: ``Complete`` or ``Failed``; empty while it runs."""
    for one in job.status.get("conditions") or ():
        if one.get("type") in ("Complete", "Failed") and one.get("status") == "True":
            return str(one["type"])
    return ""


def _tidy(obj: AnyObject, world: World, plan: Plan) -> None:
    """Plan the end of Jobs that ended, beyond those that are kept."""
    for end, field, usual in (
        ("Complete", "successfulJobsHistoryLimit", 3),
        ("Failed", "failedJobsHistoryLimit", 1),
    ):
        limit = obj.spec.get(field, usual)
        over = sorted(
            (one for one in world.jobs if _end(one) == end),
            key=lambda one: one.status.get("startTime") or one.metadata.creation_timestamp or "",
        )
        for one in over[: max(0, len(over) - int(limit))]:
            plan.actions.append(Delete.of(JOBS, one.metadata))


def _status(obj: AnyObject, world: World, active: list[AnyObject]) -> Json:
    status: Json = {
        key: obj.status[key]
        for key in ("lastScheduleTime", "lastSuccessfulTime")
        if obj.status.get(key)
    }
    if active:
        status["active"] = [
            {
                "apiVersion": JOBS.api_version,
                "kind": JOBS.kind,
                "name": one.metadata.name,
                "namespace": one.metadata.namespace,
                "resourceVersion": one.metadata.resource_version,
                "uid": one.metadata.uid,
            }
            for one in sorted(active, key=lambda one: one.metadata.name)
        ]
    done = [one.status.get("completionTime") for one in world.jobs if _end(one) == "Complete"]
    newest = max([one for one in done if one] + [status.get("lastSuccessfulTime", "")])
    if newest:
        status["lastSuccessfulTime"] = newest
    return status
