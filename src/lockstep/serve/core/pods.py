"""Replicas: how they are made, and what state they are in."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

from lockstep.api.core import PODS, ControllerRevision, Pod
from lockstep.api.names import QUEUE_LABEL, REVISION_LABEL, ROUTE_LABEL, SCHEDULER_NAME
from lockstep.api.wire import Json

DEFAULT_QUEUE: Final = "default"
LAST_REQUESTS: Final = 2
"""Seconds that a replica goes on serving while routers learn of its end."""
_LOST_KEYS: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_LOST: Final = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 10}
"""Kubernetes gives a pod 300 seconds on such a node where it does not say itself."""
_WAITS: Final = ("ContainerCreating", "PodInitializing", "")


def make(service: str, revision: ControllerRevision, ordinal: int, meta: Json, queue: str) -> Json:
    """Return replica number *ordinal* of *revision*, or its head, as it is sent to the server."""
    template = revision.data["template"]
    spec = to_place(template)
    for container in spec["containers"]:
        hooks = container.setdefault("lifecycle", {})
        hooks.setdefault("preStop", {"sleep": {"seconds": LAST_REQUESTS}})
    name = revision.metadata.name
    labels = {
        **template.get("labels", {}),
        QUEUE_LABEL: template.get("labels", {}).get(QUEUE_LABEL, queue),
        ROUTE_LABEL: service,
        REVISION_LABEL: name,
        "serving.kserve.io/inferenceservice": service,
        "component": component(name, service),
    }
    return {
        "apiVersion": PODS.api_version,
        "kind": PODS.kind,
        "metadata": {
            **meta,
            "name": f"{name}-{ordinal}",
            "labels": labels,
            "annotations": template.get("annotations", {}),
        },
        "spec": spec,
    }


def to_place(template: Json) -> Json:
    """Return a template's spec for Lockstep's scheduler, soon evicted from a node that is lost."""
    spec: Json = copy.deepcopy(template["spec"])
    spec["schedulerName"] = SCHEDULER_NAME
    given = spec.get("tolerations") or []
    named = {one.get("key", "") for one in given}
    lost = ({**_LOST, "key": key} for key in _LOST_KEYS if not named & {"", key})
    spec["tolerations"] = [*given, *lost]
    return spec


def component(revision: str, service: str) -> str:
    """Return the component that a revision is of."""
    return revision.removeprefix(f"{service}-").rpartition("-")[0]


def ready(pod: Pod) -> bool:
    """Return whether a replica takes requests."""
    return not going(pod) and any(
        one.type == "Ready" and one.status == "True" for one in pod.status.conditions
    )


def going(pod: Pod) -> bool:
    """Return whether a replica ends or has ended."""
    return pod.metadata.deletion_timestamp is not None or over(pod)


def over(pod: Pod) -> bool:
    """Return whether a replica has ended."""
    return pod.status.phase in ("Succeeded", "Failed")


def ordinal(pod: Pod) -> int:
    """Return the number of a replica among those of its revision."""
    return int(pod.metadata.name.rpartition("-")[2])


def free_ordinals(
    there: Iterable[Pod], count: int, more: Collection[int] = frozenset()
) -> list[int]:
    """Return the lowest *count* numbers that none of *there* bears, and that are none of *more*."""
    taken = {*more, *(ordinal(pod) for pod in there)}
    found: list[int] = []
    number = 0
    while len(found) < count:
        if number not in taken:
            found.append(number)
        number += 1
    return found


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a replica cannot serve."""

    pod: str
    reason: str
    message: str
    exit_code: int = 0


def failure(pods: Iterable[Pod]) -> Failure | None:
    """Return why the first of *pods* that has failed did so; none when none has."""
    for pod in sorted(pods, key=lambda one: one.metadata.name):
        status = pod.status
        for one in [*status.init_container_statuses, *status.container_statuses]:
            ended = one.state.terminated or one.last_state.terminated
            if ended is not None and ended.exit_code != 0 and not one.ready:
                last = ended.message.strip().splitlines()
                text = last[-1] if last else ended.reason
                return Failure(pod.metadata.name, "ModelLoadFailed", text, ended.exit_code)
            waiting = one.state.waiting
            if waiting is not None and waiting.reason not in _WAITS:
                return Failure(pod.metadata.name, waiting.reason, waiting.message)
        if status.phase == "Failed":
            return Failure(pod.metadata.name, status.reason or "Failed", status.message)
    return None


def revision(pod: Pod) -> str:
    """Return the revision that a replica runs."""
    return pod.metadata.labels.get(REVISION_LABEL, "")
