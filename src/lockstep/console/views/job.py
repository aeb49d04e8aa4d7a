"""One job with its gang, pods and events."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from lockstep.api import names
from lockstep.api.core import Event, Pod
from lockstep.api.gang import Gang
from lockstep.api.training import TrainingJob
from lockstep.console.views import jobs
from lockstep.console.views.picture import Picture

Json = dict[str, Any]
EVENTS_SHOWN = 100


def page(
    job: TrainingJob | None, gang: Gang | None, pods: Iterable[Pod], events: Iterable[Event]
) -> Picture:
    """Return the page of a job: facts about it, its pods and events as rows.

    Each of them is what the user may see; a job that is gone gives ``{"missing": true}``.
    """
    if job is None:
        return Picture({"missing": True})
    shown_pods = {f"pod/{pod.metadata.name}": pod_row(pod) for pod in sorted(pods, key=_order)}
    latest = sorted(events, key=_seen)[-EVENTS_SHOWN:]
    shown_events = {f"event/{event.metadata.name}": event_row(event) for event in latest}
    facts: Json = {
        "job": msgspec.structs.asdict(jobs.row(job, gang)),
        **({"gang": _gang(gang)} if gang is not None else {}),
        "conditions": [
            {
                "type": c.type,
                "status": c.status,
                "reason": c.reason,
                "message": c.message,
                "since": c.last_transition_time or "",
            }
            for c in job.status.conditions
        ],
    }
    rows = {**shown_pods, **shown_events}
    return Picture(facts, list(rows), rows)


def _gang(gang: Gang) -> Json:
    status = gang.status
    return {
        "phase": status.phase,
        "reason": status.reason,
        "message": status.message,
        "remedy": status.remedy,
        "position": status.position,
        "estimatedStart": status.estimated_start,
        "notBefore": status.not_before,
        "domain": dict(status.domain),
        "waitingSince": status.waiting_since,
        "placedAt": status.placed_at,
    }


def pod_row(pod: Pod) -> Json:
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


def event_row(event: Event) -> Json:
    """Return an event as a row."""
    return {
        "row": "event",
        "type": event.type,
        "reason": event.reason,
        "message": event.message,
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
