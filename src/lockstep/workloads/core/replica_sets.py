"""ReplicaSets: as many pods as they say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from lockstep.api.core import PODS, AnyObject, Pod
from lockstep.api.wire import Json
from lockstep.runtime.actions import Create, Delete
from lockstep.workloads.core import pods as members
from lockstep.workloads.core.plan import REPLICA_SETS, Plan, World, pod_body, word

BURST: Final = 500
"""Pods made or deleted in one go."""


def decide(obj: AnyObject, world: World, now: float) -> Plan:
    """Return what the ReplicaSet *obj* needs next."""
    wanted = int(obj.spec.get("replicas", 1))
    pods = [one for one in world.pods if members.active(one)]
    plan = Plan(_status(obj, pods, world.pods, now))
    least = int(obj.spec.get("minReadySeconds", 0))
    _, plan.again = members.count_available(pods, least, now)
    if obj.metadata.deletion_timestamp is not None:
        return plan
    missing = wanted - len(pods)
    template = obj.spec.get("template") or {}
    for name in _names(obj, min(missing, BURST), world.names):
        plan.actions.append(Create(PODS, pod_body(REPLICA_SETS, obj, template, name)))
    for pod in members.first_to_go(pods)[: max(0, min(-missing, BURST))]:
        plan.actions.append(Delete.of(PODS, pod.metadata))
    return plan


def _names(obj: AnyObject, count: int, taken: frozenset[str]) -> Iterator[str]:
    """Yield *count* free names, the same ones as long as they are free: nothing is made twice."""
    number = 0
    while count > 0:
        name = f"{obj.metadata.name}-{word(5, obj.metadata.uid, number)}"
        number += 1
        if name not in taken:
            yield name
            count -= 1


def _status(obj: AnyObject, pods: list[Pod], every: Iterable[Pod], now: float) -> Json:
    labels = ((obj.spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    least = int(obj.spec.get("minReadySeconds", 0))
    counts = {
        "fullyLabeledReplicas": sum(labels.items() <= one.metadata.labels.items() for one in pods),
        "readyReplicas": sum(map(members.ready, pods)),
        "availableReplicas": members.count_available(pods, least, now)[0],
    }
    status: Json = {"replicas": len(pods)}
    status |= {key: value for key, value in counts.items() if value}
    status["terminatingReplicas"] = sum(
        members.leaving(one) and not members.ended(one) for one in every
    )
    status["observedGeneration"] = obj.metadata.generation
    return status
