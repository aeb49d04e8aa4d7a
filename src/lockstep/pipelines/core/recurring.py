"""When a recurring run is due: Kubeflow's ScheduledWorkflow and the runs that it has made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from lockstep.api import timestamp
from lockstep.api.core import AnyObject
from lockstep.api.cron import BadSchedule, parse
from lockstep.api.pipeline import PipelineRun
from lockstep.api.wire import Json
from lockstep.pipelines.core.makers import Wish, owner

RECURRING_LABEL: Final = "scheduledworkflows.kubeflow.org/scheduledWorkflowName"
"""Kubeflow's own label: on a run, the recurring run that it is one of."""
_ENDED: Final = frozenset({"Succeeded", "Failed", "Stopped"})


def wish(obj: AnyObject, made: Sequence[PipelineRun], now: float) -> Wish:
    """Return what the recurring run *obj* wants at *now*, of which the runs *made* are there."""
    spec = obj.spec
    trigger = obj.status.get("trigger") or {}
    last = timestamp.read(trigger.get("lastTriggeredTime"))
    if spec.get("enabled") is False:
        return Wish(status=_status(last, None, "Disabled", ""))
    born = timestamp.read(obj.metadata.creation_timestamp) or now
    try:
        due, following = _times(spec, born, last, now)
    except BadSchedule as error:
        return Wish(status=_status(last, None, "Error", f"spec.trigger: {error}"))
    active = sum(one.status.phase not in _ENDED for one in made)
    if due is None:
        return Wish(status=_status(last, following, "Enabled", ""), again=following)
    if active >= int(spec.get("maxConcurrency") or 1):
        waits = f"{active} runs go on; maxConcurrency is {spec.get('maxConcurrency') or 1}"
        return Wish(status=_status(last, following, "Enabled", waits))
    return Wish(_run(obj, due), status=_status(due, following, "Enabled", ""), again=now)


def _times(
    spec: Json, born: float, last: float | None, now: float
) -> tuple[float | None, float | None]:
    """Return the time that is due now, if one is, and the next one after now.

    Raises:
        BadSchedule: when the trigger makes no sense.
    """
    trigger = spec.get("trigger") or {}
    cron, periodic = trigger.get("cronSchedule"), trigger.get("periodicSchedule")
    bounds = cron or periodic or {}
    begin = timestamp.read(bounds.get("startTime")) or born
    end = timestamp.read(bounds.get("endTime"))
    if cron:
        schedule = parse(_five(str(cron.get("cron", ""))))
        after = schedule.after
    elif periodic:
        step = float(periodic.get("intervalSecond") or 0)
        if step < 1:
            raise BadSchedule("periodicSchedule.intervalSecond must be at least 1")

        def after(moment: float) -> float | None:
            """Return the first whole number of intervals after *moment*."""
            return begin + (int((moment - begin) // step) + 1) * step
    else:
        raise BadSchedule("cronSchedule or periodicSchedule is needed")
    found = None
    moment = after(last if last is not None else begin - (1 if bounds.get("startTime") else 0))
    for _ in range(100_000):
        if moment is None or moment > now or (end is not None and moment > end):
            break
        found = moment
        if not spec.get("noCatchup"):
            break
        moment = after(moment)
    following = after(now)
    return found, None if end is not None and (following or 0) > end else following


def _five(text: str) -> str:
    """Return a schedule of Kubeflow's six fields, seconds first, in cron's five."""
    fields = text.split()
    if len(fields) != 6:
        return text
    if fields[0] != "0":
        raise BadSchedule(f"{text!r}: the seconds must be 0; runs start at whole minutes")
    return " ".join(fields[1:])


def _status(last: float | None, following: float | None, kind: str, message: str) -> Json:
    shown = {"lastTriggeredTime": last, "nextTriggeredTime": following}
    said = {key: timestamp.show(value) for key, value in shown.items() if value is not None}
    condition = {"type": kind, "status": "True", **({"message": message} if message else {})}
    return {"conditions": [condition], "trigger": said}


def _run(obj: AnyObject, due: float) -> Json:
    workflow = obj.spec.get("workflow") or {}
    labels = {**(workflow.get("labels") or {}), RECURRING_LABEL: obj.metadata.name}
    meta: Json = {
        # The same name for the same time: it is made once, however often it is tried.
        "name": f"{obj.metadata.name[:200]}-{int(due)}",
        "labels": labels,
        "ownerReferences": [owner(obj, "kubeflow.org/v1beta1", "ScheduledWorkflow")],
    }
    if notes := workflow.get("annotations"):
        meta["annotations"] = notes
    return {"metadata": meta, "spec": workflow.get("spec") or {}}
