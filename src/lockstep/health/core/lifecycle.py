"""What becomes of nodes that are not Ready and of the pods on them: a function of what is seen.

The rules are those of kube-controller-manager's node lifecycle and taint eviction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from lockstep.api import timestamp
from lockstep.api.core import Node, Pod, Taint, Toleration
from lockstep.api.names import UNREACHABLE_TAINT
from lockstep.api.wire import Json

GRACE: Final = 50.0
"""Seconds without a sign of life after which a node is taken for lost."""
STARTUP_GRACE: Final = 60.0
"""Seconds that a node may take to say anything at all."""
NOT_READY: Final = "node.kubernetes.io/not-ready"
UNREACHABLE: Final = "node.kubernetes.io/unreachable"
UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"
_BY_CONDITION: Final = {
    "MemoryPressure": "node.kubernetes.io/memory-pressure",
    "DiskPressure": "node.kubernetes.io/disk-pressure",
    "PIDPressure": "node.kubernetes.io/pid-pressure",
    "NetworkUnavailable": "node.kubernetes.io/network-unavailable",
}
_OURS: Final = frozenset({NOT_READY, UNREACHABLE, UNSCHEDULABLE, *_BY_CONDITION.values()})
_TOLD: Final = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
_SILENT: Final = "NodeStatusUnknown"
EVICTED: Final = "DeletionByTaintManager"

Mark = tuple[str, ...]


def mark(node: Node, renewed: str) -> Mark:
    """Return what changes whenever *node* shows that it lives; *renewed* is of its lease."""
    told = [
        (one.status, one.last_transition_time)
        for one in node.status.conditions
        if one.type == "Ready" and one.reason != _SILENT
    ]
    return (node.metadata.uid, renewed, *(part for one in told for part in one))


@dataclass
class Signs:
    """When each node gave its last sign of life, on a clock of our own.

    Nodes' clocks are not compared with ours, and after a restart every node has its grace again.
    """

    _seen: dict[str, tuple[Mark, float]] = field(default_factory=dict)

    def quiet(self, name: str, now_mark: Mark, now: float) -> float:
        """Return the seconds for which the node called *name* has given no sign."""
        known = self._seen.get(name)
        if known is None or (known[0] != now_mark and len(now_mark) >= len(known[0])):
            self._seen[name] = (now_mark, now)
            return 0.0
        return now - known[1]

    def forget(self, name: str) -> None:
        """Drop a node that is gone."""
        self._seen.pop(name, None)


def grace(node: Node, lease_seconds: float, usual: float = GRACE) -> float:
    """Return how long *node* may be silent; one with a long lease renews it less often."""
    if not any(one.type == "Ready" for one in node.status.conditions):
        return STARTUP_GRACE
    return max(usual, 1.25 * lease_seconds)


def lost_conditions(node: Node, now: str) -> list[Json]:
    """Return the conditions of a silent node that are to be written; none where they are so."""
    known = {one.type: one for one in node.status.conditions}
    changes = []
    for kind in _TOLD:
        there = known.get(kind)
        if there is not None and there.status == "Unknown":
            continue
        never = there is None
        said = "never posted" if never else "stopped posting"
        changes.append(
            {
                "type": kind,
                "status": "Unknown",
                "reason": "NodeStatusNeverUpdated" if never else _SILENT,
                "message": f"Kubelet {said} node status.",
                "lastTransitionTime": now,
            }
        )
    return changes


def readiness(node: Node) -> str:
    """Return what a node's Ready condition says; Unknown where it has none."""
    return next((c.status for c in node.status.conditions if c.type == "Ready"), "Unknown")


def taints(node: Node, now: str, *, evicts: bool = True) -> list[Taint]:
    """Return the taints that *node* is to have: ours by its conditions, others as they are.

    Where no node at all is Ready the fault may be ours: then nothing *evicts*.
    """
    wanted = set(_wanted(node, evicts))
    kept = [
        one
        for one in node.spec.taints
        if one.key not in _OURS or (one.key, one.effect) in wanted or one.effect == _OTHER
    ]
    there = {(one.key, one.effect) for one in kept}
    new = [
        Taint(key=key, effect=effect, time_added=now)
        for key, effect in _wanted(node, evicts)
        if (key, effect) not in there
    ]
    return [*kept, *new]


_OTHER: Final = "PreferNoSchedule"


def _wanted(node: Node, evicts: bool) -> Iterable[tuple[str, Any]]:
    bad = {"False": NOT_READY, "Unknown": UNREACHABLE}.get(readiness(node))
    if bad is not None:
        yield bad, "NoSchedule"
        if evicts:
            yield bad, "NoExecute"
    for one in node.status.conditions:
        if one.type in _BY_CONDITION and one.status == "True":
            yield _BY_CONDITION[one.type], "NoSchedule"
    if node.spec.unschedulable:
        yield UNSCHEDULABLE, "NoSchedule"


def is_lost(node: Node) -> bool:
    """Say whether a node gives no sign of life and is tainted for it: nothing new comes there."""
    keys = {one.key for one in node.spec.taints}
    if UNREACHABLE_TAINT in keys:
        return True
    return readiness(node) != "True" and not keys.isdisjoint((NOT_READY, UNREACHABLE))


@dataclass(frozen=True, slots=True)
class Evictions:
    """Pods to evict now, and the seconds until the next one's time has come."""

    now: tuple[Pod, ...] = ()
    again: float | None = None


def evictions(
    node: Node, pods: Iterable[Pod], since: Mapping[Taint, float], at: float
) -> Evictions:
    """Return which pods a node's NoExecute taints evict.

    *since* is when each taint was first seen that does not say itself when it was added.
    """
    bad = [one for one in node.spec.taints if one.effect == "NoExecute"]
    due: list[Pod] = []
    waits: list[float] = []
    for pod in pods:
        if pod.metadata.deletion_timestamp is not None or not bad:
            continue
        moment = _moment(pod, bad, since)
        if moment is None:
            continue
        if moment <= at:
            due.append(pod)
        else:
            waits.append(moment - at)
    return Evictions(tuple(due), min(waits, default=None))


def _moment(pod: Pod, bad: list[Taint], since: Mapping[Taint, float]) -> float | None:
    """Return when *pod* has to go; None where it may stay for ever."""
    moments = []
    for taint in bad:
        added = timestamp.read(taint.time_added) if taint.time_added else None
        began = since.get(taint, 0.0) if added is None else added
        bearing = [one for one in pod.spec.tolerations if tolerates(one, taint)]
        if not bearing:
            return began
        limits = [one.toleration_seconds for one in bearing if one.toleration_seconds is not None]
        if limits:
            moments.append(began + max(0, min(limits)))
    return min(moments, default=None)


def tolerates(one: Toleration, taint: Taint) -> bool:
    """Say whether a toleration bears a taint, as Kubernetes matches them."""
    if one.effect and one.effect != taint.effect:
        return False
    if one.key and one.key != taint.key:
        return False
    if one.operator == "Exists":
        return True
    return bool(one.key) and one.value == taint.value
