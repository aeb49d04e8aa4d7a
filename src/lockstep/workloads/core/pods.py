"""How far pods are, and which goes first where there are too many."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from lockstep.api import timestamp
from lockstep.api.core import Pod

_COST: Final = "controller.kubernetes.io/pod-deletion-cost"


def ended(pod: Pod) -> bool:
    """Say whether the pod has succeeded or failed."""
    return pod.status.phase in ("Succeeded", "Failed")


def leaving(pod: Pod) -> bool:
    """Say whether the pod is being deleted."""
    return pod.metadata.deletion_timestamp is not None


def active(pod: Pod) -> bool:
    """Say whether the pod counts: it neither ended nor is being deleted."""
    return not ended(pod) and not leaving(pod)


def ready(pod: Pod) -> bool:
    """Say whether the pod is ready."""
    return any(one.type == "Ready" and one.status == "True" for one in pod.status.conditions)


def available_in(pod: Pod, least: int, now: float) -> float | None:
    """Return in how many seconds the pod has been ready for *least*; none while it is not ready."""
    for one in pod.status.conditions:
        if one.type == "Ready" and one.status == "True":
            if not least:
                return 0.0
            since = timestamp.read(one.last_transition_time)
            return None if since is None else max(0.0, since + least - now)
    return None


def count_available(pods: Iterable[Pod], least: int, now: float) -> tuple[int, float | None]:
    """Return how many pods have been ready for *least* seconds, and when the next one has."""
    waits = [wait for pod in pods if (wait := available_in(pod, least, now)) is not None]
    later = [wait for wait in waits if wait > 0]
    return len(waits) - len(later), min(later, default=None)


def first_to_go(pods: Iterable[Pod]) -> list[Pod]:
    """Return *pods* in the order in which kube-controller-manager deletes superfluous ones.

    Those without a node go first, then those that do not run, are not ready, cost less, share their
    node with more of them, are ready for less long, restarted more often, are younger.
    """
    listed = list(pods)
    neighbours: dict[str, int] = {}
    for pod in listed:
        neighbours[pod.spec.node_name] = neighbours.get(pod.spec.node_name, 0) + 1

    def order(pod: Pod) -> tuple[object, ...]:
        since = next(
            (one.last_transition_time for one in pod.status.conditions if one.type == "Ready"), ""
        )
        return (
            bool(pod.spec.node_name),
            {"Pending": 0, "Unknown": 1}.get(pod.status.phase, 2),
            ready(pod),
            _cost(pod),
            -neighbours[pod.spec.node_name],
            -(timestamp.read(since) or 0.0),
            -max((one.restart_count for one in pod.status.container_statuses), default=0),
            -(timestamp.read(pod.metadata.creation_timestamp) or 0.0),
            pod.metadata.name,
        )

    return sorted(listed, key=order)


def _cost(pod: Pod) -> int:
    try:
        return int(pod.metadata.annotations.get(_COST, "0"))
    except ValueError:
        return 0
