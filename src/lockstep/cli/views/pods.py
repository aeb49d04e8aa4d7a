"""Pods and events as rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from lockstep.api import names
from lockstep.api.core import Event, Pod
from lockstep.api.simulated import pod_pretends
from lockstep.cli.views import amounts
from lockstep.cli.views.table import (
    IN_NAMESPACE,
    NAMED,
    NAMESPACE,
    Cells,
    Column,
    Table,
    age,
    place,
    rows,
)
from lockstep.cli.views.times import ago


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

    def label(name: str) -> Callable[[Pod], str]:
        return lambda pod: pod.metadata.labels.get(name, "")

    cells: Cells[Pod] = (
        IN_NAMESPACE,
        NAMED,
        ("State", state),
        (Column("Role", wide=True), label(names.ROLE_LABEL)),
        ("Node", lambda pod: pod.spec.node_name),
        (Column("GPUs", number=True), lambda pod: amounts.requested(pod, names.GPU) or None),
        (
            Column("GPU indices", wide=True),
            lambda pod: pod.metadata.annotations.get(names.GPUS_ANNOTATION, ""),
        ),
        (Column("Attempt", number=True, wide=True), label(names.ATTEMPT_LABEL)),
        (
            Column("Restarts", number=True),
            lambda pod: sum(one.restart_count for one in pod.status.container_statuses),
        ),
        (Column("IP", wide=True), lambda pod: pod.status.pod_ip),
        age(now),
    )
    return rows(sorted(pods, key=place), cells)


def event_table(events: Iterable[Event], now: float) -> Table:
    """Return the events as a table, the latest last."""
    cells: Cells[Event] = (
        (NAMESPACE, lambda one: one.involved_object.namespace),
        ("Last seen", lambda one: ago(last_seen(one), now)),
        ("Type", lambda one: one.type),
        ("Reason", lambda one: one.reason),
        ("Object", lambda one: f"{one.involved_object.kind.lower()}/{one.involved_object.name}"),
        (
            Column("Message", text=True),
            lambda one: one.message + (f" (x{one.count})" if one.count > 1 else ""),
        ),
    )
    return rows(sorted(events, key=last_seen), cells)


def last_seen(event: Event) -> str:
    """Return when the event happened last."""
    times = (event.last_timestamp, event.event_time, event.metadata.creation_timestamp)
    return next((stamp for stamp in times if stamp), "")


def _exit(code: int, signal: int, reason: str) -> str:
    word = reason or "Error"
    return f"{word} (signal {signal})" if signal else f"{word} (exit code {code})"
