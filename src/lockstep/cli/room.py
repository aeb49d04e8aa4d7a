"""Whether a plain job surely has room on an empty cluster, found out without the scheduler.

Loading the scheduler costs more than the rest of ``submit``. Most jobs are simple and fit; of these
a few comparisons are proof enough. Cases that are not simple are left to the scheduler.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from lockstep.api import names
from lockstep.api.core import Node
from lockstep.api.quantity import to_milli
from lockstep.api.queue import Queue
from lockstep.api.wire import Json

_OF_JOB: Final = frozenset(
    {
        *("framework", "roles", "queue", "runPolicy", "recovery", "checkpoint"),
        *("successPolicy", "maxWait"),
    }
)
_OF_ROLE: Final = frozenset({"name", "replicas", "template", "processesPerNode"})
_OF_POD: Final = frozenset(
    {"containers", "restartPolicy", "affinity", "volumes", "terminationGracePeriodSeconds"}
)
_FRAMEWORKS: Final = ("plain", "pytorch")
_ANYWHERE: Final = frozenset({"name", "emptyDir", "hostPath", "configMap", "secret"})
_PODS: Final = "pods"


def surely_fits(job: Json, nodes: Iterable[Node], queues: Mapping[str, Queue]) -> bool:
    """Return whether all pods of *job* fit nodes that are empty; False where that is not plain."""
    spec = job.get("spec") or {}
    if job.get("kind") != "TrainingJob" or not _OF_JOB.issuperset(spec):
        return False
    if spec.get("framework") not in _FRAMEWORKS or _is_limited(spec.get("queue"), queues):
        return False
    roles: Sequence[Json] = spec.get("roles") or ()
    if not roles or not all(map(_is_plain, roles)):
        return False
    left = [_room(node) for node in nodes if _is_open(node)]
    return all(_take(left, _wanted(role), role.get("replicas", 1)) for role in roles)


def _is_limited(name: str | None, queues: Mapping[str, Queue]) -> bool:
    seen: set[str] = set()
    name = name or "default"
    while name:
        queue = queues.get(name)
        if queue is None or name in seen:
            return True  # what that means, the scheduler knows
        seen.add(name)
        if queue.spec.limit or queue.spec.borrowing_limit:
            return True
        name = queue.spec.parent or ""
    return False


def _is_plain(role: Json) -> bool:
    template = role.get("template") or {}
    pod = template.get("spec") or {}
    if not _OF_ROLE.issuperset(role) or not _OF_POD.issuperset(pod):
        return False
    if (template.get("metadata") or {}).get("annotations"):
        return False
    volumes = all(_ANYWHERE.issuperset(volume) for volume in pod.get("volumes") or ())
    ports = [p for c in pod.get("containers") or () for p in c.get("ports") or ()]
    return volumes and not any("hostPort" in p for p in ports) and _runs_as_process(pod)


def _runs_as_process(pod: Json) -> bool:
    """Return whether the pod asks for a node of Lockstep's own, and for nothing else of it."""
    wish = {"key": names.NODE_KIND_LABEL, "operator": "Exists"}
    terms = [{"matchExpressions": [wish]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return bool(pod.get("affinity") == {"nodeAffinity": required})


def _is_open(node: Node) -> bool:
    ready = any(c.type == "Ready" and c.status == "True" for c in node.status.conditions)
    return (
        ready
        and not node.spec.unschedulable
        and not node.spec.taints
        and names.NODE_KIND_LABEL in node.metadata.labels
    )


def _room(node: Node) -> dict[str, int]:
    return {name: to_milli(amount) for name, amount in node.status.allocatable.items()}


def _wanted(role: Json) -> dict[str, int]:
    """Return what one pod of *role* asks for, in thousandths."""
    total: dict[str, int] = {_PODS: 1000}
    for container in role["template"]["spec"].get("containers") or ():
        resources = container.get("resources") or {}
        asked = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
        for name, amount in asked.items():
            total[name] = total.get(name, 0) + to_milli(amount)
    return total


def _take(left: Sequence[dict[str, int]], wanted: Mapping[str, int], count: int) -> bool:
    """Take *count* pods out of what is *left*; return whether there is room for all."""
    for node in left:
        fit = min(node.get(name, 0) // amount for name, amount in wanted.items() if amount)
        here = min(fit, count)
        for name, amount in wanted.items():
            node[name] = node.get(name, 0) - here * amount
        count -= here
        if not count:
            return True
    return False
