"""Pods and events as rows."""

from __future__ import annotations

from collections.abc import Iterable

from lockstep.api import names
from lockstep.api.core import Event, Pod
from lockstep.api.simulated import pod_pretends
from lockstep.cli.views import amounts
from lockstep.cli.views.nodes import natural
from lockstep.cli.views.table import NAMESPACE, Column, Table, table
from lockstep.cli.views.times import ago

POD_COLUMNS = (
    NAMESPACE,
    "Name",
    "State",
    Column("Role", wide=True),
    "Node",
    Column("GPUs", number=True),
    Column("GPU indices", wide=True),
    Column("Attempt", number=True, wide=True),
    Column("Restarts", number=True),
    Column("IP", wide=True),
    "Age",
)
EVENT_COLUMNS = (NAMESPACE, "Last seen", "Type", "Reason", "Object", Column("Message", text=True))


def marked(word: str, *, simulated: bool) -> str:
    """Return the state of something, marked where it does not run for real."""
    return f"{word},simulated" if simulated else word


def state(pod: Pod) -> str:
    """Return what the pod is doing, marked where its command is not executed."""
    return marked(_state(pod), simulated=pod_pretends(pod))


def _state(pod: Pod) -> str:
    """Return what the pod is doing in a word: why it waits or ended, where that is known."""
    if pod.metadata.deletion_timestamp:
        return "Terminating"
    for container in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        if container.state.waiting is not None and container.state.waiting.reason:
            return container.state.waiting.reason
        ended = container.state.terminated
        if ended is not None and ended.exit_code:
            return _exit(ended.exit_code, ended.signal, ended.reason)
    return pod.status.reason or pod.status.phase


def pod_table(pods: Iterable[Pod], now: float) -> Table:
    """Return the pods as a table, by name."""
    ordered = sorted(pods, key=lambda pod: (pod.metadata.namespace, natural(pod.metadata.name)))
    return table(POD_COLUMNS, (_pod_row(pod, now) for pod in ordered))


def event_table(events: Iterable[Event], now: float) -> Table:
    """Return the events as a table, the latest last."""
    return table(EVENT_COLUMNS, (_event_row(e, now) for e in sorted(events, key=last_seen)))


def last_seen(event: Event) -> str:
    """Return when the event happened last."""
    times = (event.last_timestamp, event.event_time, event.metadata.creation_timestamp)
    return next((stamp for stamp in times if stamp), "")


def _exit(code: int, signal: int, reason: str) -> str:
    word = reason or "Error"
    return f"{word} (signal {signal})" if signal else f"{word} (exit code {code})"


def _pod_row(pod: Pod, now: float) -> tuple[object, ...]:
    labels, annotations = pod.metadata.labels, pod.metadata.annotations
    return (
        pod.metadata.namespace,
        pod.metadata.name,
        state(pod),
        labels.get(names.ROLE_LABEL, ""),
        pod.spec.node_name,
        amounts.requested(pod, names.GPU) or None,
        annotations.get(names.GPUS_ANNOTATION, ""),
        labels.get(names.ATTEMPT_LABEL, ""),
        sum(c.restart_count for c in pod.status.container_statuses),
        pod.status.pod_ip,
        ago(pod.metadata.creation_timestamp, now),
    )


def _event_row(event: Event, now: float) -> tuple[object, ...]:
    about = event.involved_object
    times = f" (x{event.count})" if event.count > 1 else ""
    return (
        about.namespace,
        ago(last_seen(event), now),
        event.type,
        event.reason,
        f"{about.kind.lower()}/{about.name}",
        event.message + times,
    )
