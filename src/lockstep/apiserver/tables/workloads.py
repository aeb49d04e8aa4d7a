"""The tables of the kinds that make pods."""

from __future__ import annotations

from typing import Any

from lockstep.apiserver.tables.format import (
    AGE,
    CONTAINERS,
    IMAGES,
    NAME,
    NONE,
    UNSET,
    Cells,
    Column,
    Layout,
    age,
    at,
    containers_of,
    human_duration,
    is_true,
    labels,
    name_of,
    seconds,
    selector,
    since,
    wide,
)

Json = dict[str, Any]


def _deployment(obj: Json, now: float) -> Cells:
    ready, desired = at(obj, "status.readyReplicas", 0), at(obj, "spec.replicas", 0)
    return [
        name_of(obj),
        f"{ready}/{desired}",
        at(obj, "status.updatedReplicas", 0),
        at(obj, "status.availableReplicas", 0),
        age(obj, now),
        *containers_of(at(obj, "spec.template")),
        selector(at(obj, "spec.selector", {})).replace(NONE, ""),
    ]


def _replica_set(obj: Json, now: float) -> Cells:
    wanted = at(obj, "spec.selector")
    is_plain = obj.get("kind") == "ReplicationController"
    return [
        name_of(obj),
        at(obj, "spec.replicas", 0),
        at(obj, "status.replicas", 0),
        at(obj, "status.readyReplicas", 0),
        age(obj, now),
        *containers_of(at(obj, "spec.template")),
        labels(wanted) if is_plain else selector(wanted),
    ]


def _stateful_set(obj: Json, now: float) -> Cells:
    ready, desired = at(obj, "status.readyReplicas", 0), at(obj, "spec.replicas", 0)
    names, images = containers_of(at(obj, "spec.template"))
    return [name_of(obj), f"{ready}/{desired}", age(obj, now), names, images]


def _daemon_set(obj: Json, now: float) -> Cells:
    counts = (
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberAvailable",
    )
    return [
        name_of(obj),
        *(at(obj, f"status.{count}", 0) for count in counts),
        labels(at(obj, "spec.template.spec.nodeSelector")),
        age(obj, now),
        *containers_of(at(obj, "spec.template")),
        selector(at(obj, "spec.selector")),
    ]


def _job(obj: Json, now: float) -> Cells:
    return [
        name_of(obj),
        _job_status(obj),
        _completions(obj),
        _job_duration(obj, now),
        age(obj, now),
        *containers_of(at(obj, "spec.template")),
        selector(at(obj, "spec.selector")),
    ]


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
    for type_, shown in (
        ("Suspended", "Suspended"),
        ("FailureTarget", "FailureTarget"),
        ("SuccessCriteriaMet", "SuccessCriteriaMet"),
    ):
        if is_true(obj, type_):
            return shown
    return "Running"


def _job_duration(obj: Json, now: float) -> str:
    started = seconds(at(obj, "status.startTime", ""))
    if started is None:
        return ""
    ended = seconds(at(obj, "status.completionTime", ""))
    return human_duration((now if ended is None else ended) - started)


def _cron_job(obj: Json, now: float) -> Cells:
    suspend, last = at(obj, "spec.suspend"), at(obj, "status.lastScheduleTime")
    return [
        name_of(obj),
        at(obj, "spec.schedule", ""),
        at(obj, "spec.timeZone", NONE),
        UNSET if suspend is None else str(bool(suspend)),
        len(at(obj, "status.active", [])),
        since(last, now) if last else NONE,
        age(obj, now),
        *containers_of(at(obj, "spec.jobTemplate.spec.template")),
        selector(at(obj, "spec.jobTemplate.spec.selector")),
    ]


def _revision(obj: Json, now: float) -> Cells:
    owners = at(obj, "metadata.ownerReferences", [])
    owner = next((o for o in owners if o.get("controller")), None)
    shown = NONE
    if owner is not None:
        group = owner["apiVersion"].rpartition("/")[0]
        kind = owner["kind"].lower()
        shown = f"{kind}.{group}/{owner['name']}" if group else f"{kind}/{owner['name']}"
    return [name_of(obj), shown, obj.get("revision", 0), age(obj, now)]


def _autoscaler(obj: Json, now: float) -> Cells:
    target = at(obj, "spec.scaleTargetRef", {})
    return [
        name_of(obj),
        f"{target.get('kind', '')}/{target.get('name', '')}",
        _metrics(obj),
        str(at(obj, "spec.minReplicas", UNSET)),
        at(obj, "spec.maxReplicas", 0),
        at(obj, "status.currentReplicas", 0),
        age(obj, now),
    ]


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


def _budget(obj: Json, now: float) -> Cells:
    return [
        name_of(obj),
        str(at(obj, "spec.minAvailable", "N/A")),
        str(at(obj, "spec.maxUnavailable", "N/A")),
        at(obj, "status.disruptionsAllowed", 0),
        age(obj, now),
    ]


def _sets(spec: str, status: str) -> tuple[Column, ...]:
    return (
        NAME,
        Column("Desired", f"{spec}#replicas", "integer"),
        Column("Current", f"{status}#replicas", "integer"),
        Column("Ready", f"{status}#readyReplicas", "integer"),
        AGE,
        CONTAINERS,
        IMAGES,
        wide("Selector", f"{spec}#selector"),
    )


_READY = Column("Ready", "Number of the pod with ready state")
_DAEMON = "apps.v1.DaemonSetStatus"
_SCALER = "autoscaling.v2.HorizontalPodAutoscalerSpec"

LAYOUTS = {
    "deployments.apps": Layout(
        (
            NAME,
            _READY,
            Column("Up-to-date", "apps.v1.DeploymentStatus#updatedReplicas"),
            Column("Available", "apps.v1.DeploymentStatus#availableReplicas"),
            AGE,
            CONTAINERS,
            IMAGES,
            wide("Selector", "apps.v1.DeploymentSpec#selector"),
        ),
        _deployment,
    ),
    "replicasets.apps": Layout(
        _sets("apps.v1.ReplicaSetSpec", "apps.v1.ReplicaSetStatus"), _replica_set
    ),
    "replicationcontrollers": Layout(
        _sets("core.v1.ReplicationControllerSpec", "core.v1.ReplicationControllerStatus"),
        _replica_set,
    ),
    "statefulsets.apps": Layout((NAME, _READY, AGE, CONTAINERS, IMAGES), _stateful_set),
    "daemonsets.apps": Layout(
        (
            NAME,
            Column("Desired", f"{_DAEMON}#desiredNumberScheduled", "integer"),
            Column("Current", f"{_DAEMON}#currentNumberScheduled", "integer"),
            Column("Ready", f"{_DAEMON}#numberReady", "integer"),
            Column("Up-to-date", f"{_DAEMON}#updatedNumberScheduled", "integer"),
            Column("Available", f"{_DAEMON}#numberAvailable", "integer"),
            Column("Node Selector", "core.v1.PodSpec#nodeSelector"),
            AGE,
            CONTAINERS,
            IMAGES,
            wide("Selector", "apps.v1.DaemonSetSpec#selector"),
        ),
        _daemon_set,
    ),
    "controllerrevisions.apps": Layout(
        (
            NAME,
            Column("Controller", "Controller of the object"),
            Column("Revision", "apps.v1.ControllerRevision#revision"),
            AGE,
        ),
        _revision,
    ),
    "jobs.batch": Layout(
        (
            NAME,
            Column("Status", "Status of the job."),
            Column("Completions", "batch.v1.JobStatus#succeeded"),
            Column("Duration", "Time required to complete the job."),
            AGE,
            CONTAINERS,
            IMAGES,
            wide("Selector", "batch.v1.JobSpec#selector"),
        ),
        _job,
    ),
    "cronjobs.batch": Layout(
        (
            NAME,
            Column("Schedule", "batch.v1.CronJobSpec#schedule"),
            Column("Timezone", "batch.v1.CronJobSpec#timeZone"),
            Column("Suspend", "batch.v1.CronJobSpec#suspend", "boolean"),
            Column("Active", "batch.v1.CronJobStatus#active", "integer"),
            Column("Last Schedule", "batch.v1.CronJobStatus#lastScheduleTime"),
            AGE,
            CONTAINERS,
            IMAGES,
            wide("Selector", "batch.v1.JobSpec#selector"),
        ),
        _cron_job,
    ),
    "horizontalpodautoscalers.autoscaling": Layout(
        (
            NAME,
            Column("Reference", f"{_SCALER}#scaleTargetRef"),
            Column("Targets", f"{_SCALER}#metrics"),
            Column("MinPods", f"{_SCALER}#minReplicas"),
            Column("MaxPods", f"{_SCALER}#maxReplicas"),
            Column("Replicas", "autoscaling.v2.HorizontalPodAutoscalerStatus#currentReplicas"),
            AGE,
        ),
        _autoscaler,
    ),
    "poddisruptionbudgets.policy": Layout(
        (
            NAME,
            Column("Min Available", "The minimum number of pods that must be available."),
            Column("Max Unavailable", "The maximum number of pods that may be unavailable."),
            Column(
                "Allowed Disruptions",
                "Calculated number of pods that may be disrupted at this time.",
                "integer",
            ),
            AGE,
        ),
        _budget,
    ),
}
