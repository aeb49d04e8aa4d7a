"""The tables of the kinds that make pods."""

from __future__ import annotations

from lockstep.api.wire import Json
from lockstep.apiserver.tables.format import (
    AGE,
    NAME,
    NONE,
    UNSET,
    Cell,
    Column,
    at,
    containers,
    human_duration,
    is_true,
    labels,
    listed,
    seconds,
    selector,
    since,
    wide,
)


def _selected(path: str = "spec.selector") -> Cell:
    return lambda obj: selector(at(obj, path))


def _set_selector(obj: Json) -> str:
    wanted = at(obj, "spec.selector")
    return labels(wanted) if obj.get("kind") == "ReplicationController" else selector(wanted)


def _ready(obj: Json) -> str:
    return f"{at(obj, 'status.readyReplicas', 0)}/{at(obj, 'spec.replicas', 0)}"


def _completions(obj: Json) -> str:
    succeeded, wanted = at(obj, "status.succeeded", 0), at(obj, "spec.completions")
    if wanted is not None:
        return f"{succeeded}/{wanted}"
    parallelism = at(obj, "spec.parallelism", 0)
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _job_status(obj: Json) -> str:
    if is_true(obj, "Complete"):
        return "Complete"
    if is_true(obj, "Failed"):
        return "Failed"
    if at(obj, "metadata.deletionTimestamp"):
        return "Terminating"
    states = ("Suspended", "FailureTarget", "SuccessCriteriaMet")
    return next((state for state in states if is_true(obj, state)), "Running")


def _job_duration(obj: Json, now: float) -> str:
    started = seconds(at(obj, "status.startTime", ""))
    if started is None:
        return ""
    ended = seconds(at(obj, "status.completionTime", ""))
    return human_duration((now if ended is None else ended) - started)


def _suspended(obj: Json) -> str:
    suspend = at(obj, "spec.suspend")
    return UNSET if suspend is None else str(bool(suspend))


def _last_schedule(obj: Json, now: float) -> str:
    last = at(obj, "status.lastScheduleTime")
    return since(last, now) if last else NONE


def _owner(obj: Json) -> str:
    owners = at(obj, "metadata.ownerReferences", [])
    owner = next((o for o in owners if o.get("controller")), None)
    if owner is None:
        return NONE
    group, kind = owner["apiVersion"].rpartition("/")[0], owner["kind"].lower()
    return f"{kind}.{group}/{owner['name']}" if group else f"{kind}/{owner['name']}"


def _metrics(obj: Json) -> str:
    specs, known = at(obj, "spec.metrics", []), at(obj, "status.currentMetrics", [])
    if not specs:
        return NONE
    shown = [_metric(s, known[i] if i < len(known) else {}) for i, s in enumerate(specs)]
    text = ", ".join(shown[:2])
    return f"{text} + {len(shown) - 2} more..." if len(shown) > 2 else text


def _metric(spec: Json, status: Json) -> str:
    sort = spec.get("type", "")
    sort = sort[:1].lower() + sort[1:]
    part, current = spec.get(sort), at(status, f"{sort}.current", {})
    if part is None:
        return "<unknown type>"
    target = part.get("target") or {}
    average = target.get("averageValue")
    if sort in ("resource", "containerResource"):
        if average is not None:
            return f"{part.get('name')}: {current.get('averageValue', '<unknown>')}/{average}"
        used, wanted = current.get("averageUtilization"), target.get("averageUtilization")
        now = "<unknown>" if used is None else f"{used}%"
        return f"{part.get('name')}: {now}/{'<auto>' if wanted is None else f'{wanted}%'}"
    if average is not None:
        suffix = "" if sort == "pods" else " (avg)"
        return f"{current.get('averageValue', '<unknown>')}/{average}{suffix}"
    return f"{current.get('value', '<unknown>')}/{target.get('value')}"


def _sets(spec: str, status: str) -> tuple[Column, ...]:
    return (
        NAME,
        Column("Desired", f"{spec}#replicas", type="integer"),
        Column("Current", f"{status}#replicas", type="integer"),
        Column("Ready", f"{status}#readyReplicas", type="integer"),
        AGE,
        *_CONTAINERS,
        wide("Selector", f"{spec}#selector", _set_selector),
    )


_READY = Column("Ready", "Number of the pod with ready state", _ready)
_CONTAINERS = containers("spec.template")
_DEPLOYMENT, _DAEMON = "apps.v1.DeploymentStatus", "apps.v1.DaemonSetStatus"
_SCALER, _CRON = "autoscaling.v2.HorizontalPodAutoscaler", "batch.v1.CronJob"

COLUMNS = {
    "deployments.apps": (
        NAME,
        _READY,
        Column("Up-to-date", f"{_DEPLOYMENT}#updatedReplicas", unset=0),
        Column("Available", f"{_DEPLOYMENT}#availableReplicas", unset=0),
        AGE,
        *_CONTAINERS,
        wide(
            "Selector",
            "apps.v1.DeploymentSpec#selector",
            lambda obj: selector(at(obj, "spec.selector", {})).replace(NONE, ""),
        ),
    ),
    "replicasets.apps": _sets("apps.v1.ReplicaSetSpec", "apps.v1.ReplicaSetStatus"),
    "replicationcontrollers": _sets(
        "core.v1.ReplicationControllerSpec", "core.v1.ReplicationControllerStatus"
    ),
    "statefulsets.apps": (NAME, _READY, AGE, *_CONTAINERS),
    "daemonsets.apps": (
        NAME,
        Column("Desired", f"{_DAEMON}#desiredNumberScheduled", type="integer"),
        Column("Current", f"{_DAEMON}#currentNumberScheduled", type="integer"),
        Column("Ready", f"{_DAEMON}#numberReady", type="integer"),
        Column("Up-to-date", f"{_DAEMON}#updatedNumberScheduled", type="integer"),
        Column("Available", f"{_DAEMON}#numberAvailable", type="integer"),
        Column(
            "Node Selector",
            "core.v1.PodSpec#nodeSelector",
            lambda obj: labels(at(obj, "spec.template.spec.nodeSelector")),
        ),
        AGE,
        *_CONTAINERS,
        wide("Selector", "apps.v1.DaemonSetSpec#selector", _selected()),
    ),
    "controllerrevisions.apps": (
        NAME,
        Column("Controller", "Controller of the object", _owner),
        Column("Revision", "apps.v1.ControllerRevision#revision", unset=0),
        AGE,
    ),
    "jobs.batch": (
        NAME,
        Column("Status", "Status of the job.", _job_status),
        Column("Completions", "batch.v1.JobStatus#succeeded", _completions),
        Column("Duration", "Time required to complete the job.", timed=_job_duration),
        AGE,
        *_CONTAINERS,
        wide("Selector", "batch.v1.JobSpec#selector", _selected()),
    ),
    "cronjobs.batch": (
        NAME,
        Column("Schedule", f"{_CRON}Spec#schedule"),
        Column("Timezone", f"{_CRON}Spec#timeZone", unset=NONE),
        Column("Suspend", f"{_CRON}Spec#suspend", _suspended, "boolean"),
        Column(
            "Active",
            f"{_CRON}Status#active",
            lambda obj: len(at(obj, "status.active", [])),
            "integer",
        ),
        Column("Last Schedule", f"{_CRON}Status#lastScheduleTime", timed=_last_schedule),
        AGE,
        *containers("spec.jobTemplate.spec.template"),
        wide(
            "Selector",
            "batch.v1.JobSpec#selector",
            _selected("spec.jobTemplate.spec.selector"),
        ),
    ),
    "horizontalpodautoscalers.autoscaling": (
        NAME,
        Column(
            "Reference",
            f"{_SCALER}Spec#scaleTargetRef",
            listed(("spec.scaleTargetRef.kind", "spec.scaleTargetRef.name")),
        ),
        Column("Targets", f"{_SCALER}Spec#metrics", _metrics),
        Column(
            "MinPods",
            f"{_SCALER}Spec#minReplicas",
            lambda obj: str(at(obj, "spec.minReplicas", UNSET)),
        ),
        Column("MaxPods", f"{_SCALER}Spec#maxReplicas", unset=0),
        Column("Replicas", f"{_SCALER}Status#currentReplicas", unset=0),
        AGE,
    ),
    "poddisruptionbudgets.policy": (
        NAME,
        Column(
            "Min Available",
            "The minimum number of pods that must be available.",
            lambda obj: str(at(obj, "spec.minAvailable", "N/A")),
        ),
        Column(
            "Max Unavailable",
            "The maximum number of pods that may be unavailable.",
            lambda obj: str(at(obj, "spec.maxUnavailable", "N/A")),
        ),
        Column(
            "Allowed Disruptions",
            "Calculated number of pods that may be disrupted at this time.",
            "status.disruptionsAllowed",
            "integer",
        ),
        AGE,
    ),
}
