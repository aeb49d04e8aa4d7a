"""One job with its gang, pods and events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from lockstep.api import checkpoint, copies, names, timestamp
from lockstep.api.core import Event, Pod
from lockstep.api.device_usage import DeviceUsage
from lockstep.api.diagnosis import Diagnosis
from lockstep.api.gang import Gang
from lockstep.api.roles import gpus
from lockstep.api.training import TrainingJob
from lockstep.api.wire import Json
from lockstep.console.views import jobs, timeline
from lockstep.console.views.picture import Picture, fields

EVENTS_SHOWN = 100
GANG = (
    "phase reason message remedy position estimated_start not_before domain waiting_since placed_at"
)


def page(
    job: TrainingJob | None,
    gang: Gang | None,
    pods: Iterable[Pod],
    events: Iterable[Event],
    usage: Mapping[str, DeviceUsage],
) -> Picture:
    """Return the page of a job: facts about it, its pods and events as rows.

    Each of them is what the user may see; a job that is gone gives ``{"missing": true}``.
    *usage* is what the devices of its nodes do, by node.
    """
    if job is None:
        return Picture({"missing": True})
    there = sorted(pods, key=_order)
    shown_pods = {f"pod/{p.metadata.name}": pod_row(p, usage.get(p.spec.node_name)) for p in there}
    shown_events = {f"event/{one.metadata.name}": event_row(one) for one in latest(events)}
    facts: Json = {
        "job": msgspec.structs.asdict(jobs.row(job, gang)),
        **({"gang": fields(gang.status, GANG)} if gang is not None else {}),
        "conditions": [
            {**fields(c, "type status reason message"), "since": c.last_transition_time or ""}
            for c in job.status.conditions
        ],
        "roles": [{**fields(r, "name replicas min max"), "gpus": gpus(r)} for r in job.spec.roles],
        "timeline": timeline.stages(job),
        "attempts": timeline.attempts(job),
        "attempt": job.status.attempt,
        "checkpoint": _checkpoint(job),
        "copies": _copies(job),
        "diagnosis": _diagnosis(job.status.diagnosis),
    }
    rows = {**shown_pods, **shown_events}
    return Picture(facts, list(rows), rows)


def _checkpoint(job: TrainingJob) -> Json | None:
    known = checkpoint.last(job.metadata.annotations, job.status.last_checkpoint)
    if known is None and job.spec.checkpoint is None:
        return None
    wish = job.spec.checkpoint
    return {
        "last": timestamp.show(known) if known is not None else "",
        "interval": (wish.interval or "") if wish is not None else "",
        "directory": wish.directory if wish is not None else "",
    }


def _copies(job: TrainingJob) -> Json | None:
    """Return what a lost pod costs: steps, if copies elsewhere bound them, and memory."""
    found, replicated = job.status.copies, job.status.replicated
    if found is None:
        return None
    steps = found.every if copies.safe(found, replicated) else 0
    return {"steps": steps, "memory": 2 * found.bytes}


def _diagnosis(found: Diagnosis | None) -> Json | None:
    if found is None:
        return None
    return {
        **fields(found, "cause action confidence", **{"class": "class_"}),
        **fields(found.place, "nodes ranks devices"),
        "evidence": found.evidence[:20],
    }


def latest(events: Iterable[Event]) -> list[Event]:
    """Return the newest events, the oldest of them first."""
    return sorted(events, key=_seen)[-EVENTS_SHOWN:]


def _of_gpus(pod: Pod, usage: DeviceUsage | None) -> list[Json]:
    text = pod.metadata.annotations.get(names.GPUS_ANNOTATION, "")
    held = {int(one) for one in text.split(",") if one.isascii() and one.isdigit()}
    return [
        fields(one, "index memory memory_used power temperature", use="utilization")
        for one in (usage.gpus if usage is not None else ())
        if one.index in held
    ]


def pod_row(pod: Pod, usage: DeviceUsage | None = None) -> Json:
    """Return a pod as a row."""
    told, labels = pod.metadata.annotations, pod.metadata.labels
    return {
        "row": "pod",
        "name": pod.metadata.name,
        "role": labels.get(names.ROLE_LABEL, ""),
        "rank": labels.get(names.INDEX_LABEL, ""),
        "state": state(pod),
        "node": pod.spec.node_name,
        "gpus": told.get(names.GPUS_ANNOTATION, ""),
        "containers": [container.name for container in pod.spec.containers],
        "created": pod.metadata.creation_timestamp or "",
        "started": pod.status.start_time or "",
        "ended": _ended(pod),
        "restarts": sum(one.restart_count for one in pod.status.container_statuses),
        "attempt": labels.get(names.ATTEMPT_LABEL, ""),
        "devices": _of_gpus(pod, usage),
    }


def state(pod: Pod) -> str:
    """Return what a pod does in a word: why it waits or how it ended, where that is known."""
    if pod.metadata.deletion_timestamp:
        return "Terminating"
    for container in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        if container.state.waiting is not None and container.state.waiting.reason:
            return container.state.waiting.reason
        ended = container.state.terminated
        if ended is not None and ended.exit_code:
            return f"{ended.reason or 'Error'} ({ended.exit_code})"
    return pod.status.reason or pod.status.phase


def _ended(pod: Pod) -> str:
    ends = [
        one.state.terminated.finished_at or ""
        for one in pod.status.container_statuses
        if one.state.terminated is not None
    ]
    return max(ends, default="")


def event_row(event: Event) -> Json:
    """Return an event as a row."""
    return {
        "row": "event",
        **fields(event, "type reason message"),
        "object": f"{event.involved_object.kind}/{event.involved_object.name}",
        "count": max(1, event.count),
        "seen": _seen(event),
    }


def _order(pod: Pod) -> tuple[str, int, str]:
    labels = pod.metadata.labels
    index = labels.get(names.INDEX_LABEL, "")
    return labels.get(names.ROLE_LABEL, ""), int(index) if index.isdigit() else 0, pod.metadata.name


def _seen(event: Event) -> str:
    times = (event.last_timestamp, event.event_time, event.metadata.creation_timestamp)
    return next((stamp for stamp in times if stamp), "")
