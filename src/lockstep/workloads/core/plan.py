"""What a workload's controller does next, and what it may look at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final

import msgspec

from lockstep.api.core import AnyObject, ControllerRevision, Node, Pod
from lockstep.api.meta import owner_reference
from lockstep.api.resource import Resource
from lockstep.api.wire import Json
from lockstep.compat.pods import LOCAL_QUEUE_LABEL
from lockstep.runtime.actions import Action

DEPLOYMENTS: Final = Resource("apps", "v1", "deployments", "Deployment", True, AnyObject)
REPLICA_SETS: Final = Resource("apps", "v1", "replicasets", "ReplicaSet", True, AnyObject)
STATEFUL_SETS: Final = Resource("apps", "v1", "statefulsets", "StatefulSet", True, AnyObject)
DAEMON_SETS: Final = Resource("apps", "v1", "daemonsets", "DaemonSet", True, AnyObject)
CRON_JOBS: Final = Resource("batch", "v1", "cronjobs", "CronJob", True, AnyObject)
JOBS: Final = Resource("batch", "v1", "jobs", "Job", True, AnyObject)


@dataclass(frozen=True, slots=True)
class World:
    """What a workload has, and the nodes that there are."""

    pods: Sequence[Pod] = ()
    sets: Sequence[AnyObject] = ()
    """A Deployment's ReplicaSets."""
    jobs: Sequence[AnyObject] = ()
    revisions: Sequence[ControllerRevision] = ()
    nodes: Sequence[Node] = ()
    names: frozenset[str] = frozenset()
    """Names of all pods of the namespace, those of other owners as well."""


@dataclass(slots=True)
class Plan:
    """Actions in their order, the status to be written, and when to look again."""

    status: Json
    actions: list[Action] = field(default_factory=list)
    again: float | None = None
    """Seconds until time alone changes what is to be done."""
    refused: str = ""
    """What cannot be honoured, in words; nothing is done then."""

    def wait(self, seconds: float) -> None:
        """Look again after *seconds*, or earlier if that was asked for already."""
        self.again = seconds if self.again is None else min(self.again, seconds)


def owner(resource: Resource[Any], obj: AnyObject) -> Json:
    """Return the reference by which *obj* controls another object."""
    return {**owner_reference(obj, resource), "blockOwnerDeletion": True}


_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
"""Those of Kubernetes: no vowels, so that no words come of them."""


def word(length: int, *parts: object) -> str:
    """Return a word that depends on *parts* alone, such as ``7d9xk`` for a name."""
    text = msgspec.json.encode(parts, order="sorted")
    number = int.from_bytes(sha256(text).digest()[:8], "big")
    letters = ""
    for _ in range(length):
        number, digit = divmod(number, len(_LETTERS))
        letters += _LETTERS[digit]
    return letters


def pod_body(
    resource: Resource[Any], obj: AnyObject, template: Json, name: str, **labels: str
) -> Json:
    """Return the pod called *name* of *template*, with *labels* beside the template's own."""
    meta = template.get("metadata") or {}
    metadata: Json = {"name": name, "ownerReferences": [owner(resource, obj)]}
    metadata["labels"] = {**queue_label(obj), **(meta.get("labels") or {}), **labels}
    if annotations := meta.get("annotations"):
        metadata["annotations"] = annotations
    if finalizers := meta.get("finalizers"):
        metadata["finalizers"] = finalizers
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": dict(template.get("spec") or {}),
    }


def queue_label(obj: AnyObject) -> dict[str, str]:
    """Return the label by which *obj* names a queue: as under Kueue its pods wait there."""
    name = obj.metadata.labels.get(LOCAL_QUEUE_LABEL)
    return {LOCAL_QUEUE_LABEL: name} if name else {}


def amount(given: object, whole: int, default: int, *, up: bool) -> int:
    """Return how many of *whole* a number or a percentage such as ``25%`` stands for."""
    if given is None:
        return default
    if isinstance(given, str) and given.endswith("%"):
        hundredths = whole * int(given[:-1])
        return -(-hundredths // 100) if up else hundredths // 100
    return int(str(given))
