"""Which gang and queue a pod belongs to, in the words of any system."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final

import msgspec

from lockstep.api.core import Pod
from lockstep.api.names import GANG_LABEL, GANG_SIZE_ANNOTATION, QUEUE_LABEL
from lockstep.compat.pods import LOCAL_QUEUE_LABEL, local_queue


class _TaskGroup(msgspec.Struct, rename="camel"):
    """A task group of YuniKorn."""

    min_member: Annotated[int, msgspec.Meta(ge=0)] = 0


_GANG_LABELS: Final = (
    GANG_LABEL,
    "scheduling.x-k8s.io/pod-group",
    "pod-group.scheduling.sigs.k8s.io",
    "kueue.x-k8s.io/pod-group-name",
)
_GANG_ANNOTATIONS: Final = (
    "scheduling.k8s.io/group-name",
    "scheduling.volcano.sh/group-name",
    "pod-group-name",
    "gang.scheduling.koordinator.sh/name",
)
_TASK_GROUP: Final = "yunikorn.apache.org/task-group-name"
_TASK_GROUPS: Final = "yunikorn.apache.org/task-groups"
_SIZES: Final = (
    GANG_SIZE_ANNOTATION,
    "kueue.x-k8s.io/pod-group-total-count",
    "gang.scheduling.koordinator.sh/min-available",
)
_QUEUE_LABELS: Final = (
    "kai.scheduler/queue",
    "runai/queue",
    "quota.scheduling.koordinator.sh/name",
)
_VOLCANO_QUEUE: Final = "scheduling.volcano.sh/queue-name"


def gang_of(labels: Mapping[str, str], annotations: Mapping[str, str]) -> str:
    """Return the gang of a pod with these *labels* and *annotations*; empty where it has none.

    Our own label goes first, then labels, then annotations, each in a fixed order, so that a pod
    which two systems claim has one gang wherever it is asked.
    """
    for name in _GANG_LABELS:
        if found := labels.get(name):
            return found
    for name in _GANG_ANNOTATIONS:
        if found := annotations.get(name):
            return found
    if _TASK_GROUP in annotations:
        app = labels.get("applicationId") or labels.get("yunikorn.apache.org/app-id")
        return app or annotations.get("yunikorn.apache.org/app-id", "")
    return ""


def gang_of_pod(pod: Pod) -> str:
    """Return the gang of a pod; empty where it has none.

    What Kubernetes itself knows (``spec.schedulingGroup``) goes before all but our own label.
    """
    meta, group = pod.metadata, pod.spec.scheduling_group
    if group is not None and group.pod_group_name and GANG_LABEL not in meta.labels:
        return group.pod_group_name
    return gang_of(meta.labels, meta.annotations)


def members_of(labels: Mapping[str, str], annotations: Mapping[str, str]) -> int:
    """Return how many pods of its gang a pod says that start together; 0 where it does not say.

    Ours, Kueue's and Koordinator's pods give a number, YuniKorn's a list of groups, each with its
    own.
    """
    for name in _SIZES:
        text = annotations.get(name, "")
        if text.isdecimal():
            return int(text)
    if _TASK_GROUP not in annotations:
        return 0
    try:
        groups = msgspec.json.decode(annotations.get(_TASK_GROUPS, "[]"), type=list[_TaskGroup])
    except msgspec.DecodeError:
        return 0
    return sum(one.min_member for one in groups)


def queue_of_pod(labels: Mapping[str, str], annotations: Mapping[str, str], namespace: str) -> str:
    """Return the queue that a pod itself names; empty where it names none."""
    if own := labels.get(QUEUE_LABEL):
        return own
    if local := labels.get(LOCAL_QUEUE_LABEL):
        return local_queue(namespace, local)
    for name in _QUEUE_LABELS:
        if found := labels.get(name):
            return found
    return annotations.get(_VOLCANO_QUEUE, "")
