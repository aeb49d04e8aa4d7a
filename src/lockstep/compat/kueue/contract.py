"""Kueue's contract with a job that names a queue: flavors, priority, time, suspension.

A flavor's labels and tolerations reach the job's pods. Where a ClusterQueue has several flavors,
a pod may use the nodes of each that it tolerates and whose labels do not contradict its own
selector: quota is summed over them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from lockstep.api.core import AnyObject
from lockstep.api.gang import Gang
from lockstep.api.training import TRAINING_JOBS, TrainingJob
from lockstep.api.wire import Json, to_builtins
from lockstep.compat.kueue.kinds import CLUSTER_QUEUE, FLAVOR, LOCAL_QUEUE
from lockstep.compat.kueue.objects import ClusterQueueSpec, ResourceFlavorSpec, Taint
from lockstep.compat.pods import LOCAL_QUEUE_LABEL, local_queue
from lockstep.compat.tiers import TOPOLOGY, by_labels
from lockstep.compat.translation import Look, Refused, Translation, read

PRIORITY_LABEL: Final = "kueue.x-k8s.io/priority-class"
LIMIT_LABEL: Final = "kueue.x-k8s.io/max-exec-time-seconds"
READS: Final = (LOCAL_QUEUE, CLUSTER_QUEUE, FLAVOR, TOPOLOGY)
_LEVELS: Final = {
    "required": "kueue.x-k8s.io/podset-required-topology",
    "preferred": "kueue.x-k8s.io/podset-preferred-topology",
}
_SLICES: Final = (
    "kueue.x-k8s.io/podset-slice-required-topology",
    "kueue.x-k8s.io/podset-slice-required-topology-constraints",
)
_AT: Final = f"metadata.labels[{LOCAL_QUEUE_LABEL}]"
_PLACED: Final = ("Placed", "Running")


@dataclass(frozen=True, slots=True)
class Terms:
    """On which terms a job is admitted: its queues and the flavors of each resource."""

    queue: str
    cluster_queue: str
    flavors: Mapping[str, str]
    """The flavor of each resource that has one alone."""
    held: bool = False
    """Whether a queue's ``stopPolicy`` keeps the job out."""


def under(
    obj: AnyObject,
    made: Translation,
    look: Look,
    has_queue: Callable[[str], bool],
    *,
    placed: bool = False,
) -> tuple[Translation, Terms | None]:
    """Return *made* of *obj* under the contract, and its terms; unchanged where *obj* has no queue.

    *has_queue* says whether there is a Queue of a name that no LocalQueue stands behind, *placed*
    whether the job has its place: a queue that holds keeps others out, one that drains all.

    Raises:
        Refused: when the queue or a flavor is missing, or no flavor fits a pod.
    """
    name = obj.metadata.labels.get(LOCAL_QUEUE_LABEL, "")
    bodies = [body for body in made.objects if body["kind"] == TRAINING_JOBS.kind]
    if not name or not bodies:
        return made, None
    space = obj.metadata.namespace
    local = look(LOCAL_QUEUE, space, name)
    if local is None:
        if not has_queue(local_queue(space, name)):
            raise Refused(_AT, name, f"create the LocalQueue {name} in namespace {space}")
        return _agreed(obj, made, [], look), None
    cluster = str(local.spec.get("clusterQueue", ""))
    found = look(CLUSTER_QUEUE, "", cluster)
    if found is None:
        raise Refused(_AT, name, f"create its ClusterQueue {cluster}")
    groups = read(found.spec, ClusterQueueSpec).resource_groups
    choices: list[tuple[list[str], dict[str, ResourceFlavorSpec]]] = []
    for group in groups:
        flavors = {one.name: _flavor(one.name, look, cluster) for one in group.flavors}
        names = group.covered_resources or [r.name for r in group.flavors[0].resources]
        choices.append((names, flavors))
    alone = {
        resource: next(iter(flavors))
        for names, flavors in choices
        for resource in names
        if len(flavors) == 1
    }
    policies = {str(one.spec.get("stopPolicy", "")) for one in (local, found)}
    held = "HoldAndDrain" in policies or ("Hold" in policies and not placed)
    agreed = _agreed(obj, made, choices, look, held=held)
    return agreed, Terms(name, cluster, alone, held)


def _flavor(name: str, look: Look, cluster: str) -> ResourceFlavorSpec:
    found = look(FLAVOR, "", name)
    if found is None:
        raise Refused(_AT, cluster, f"create the ResourceFlavor {name} of this ClusterQueue")
    return read(found.spec, ResourceFlavorSpec)


def _agreed(
    obj: AnyObject,
    made: Translation,
    choices: Sequence[tuple[list[str], dict[str, ResourceFlavorSpec]]],
    look: Look,
    *,
    held: bool = False,
) -> Translation:
    """Return *made* with its jobs under the flavors, and under what the labels of *obj* say."""
    objects = []
    for body in made.objects:
        if body["kind"] != TRAINING_JOBS.kind:
            objects.append(body)
            continue
        spec = {**body["spec"], "suspend": held}
        if priority := obj.metadata.labels.get(PRIORITY_LABEL):
            spec["priorityClassName"] = priority
        if limit := obj.metadata.labels.get(LIMIT_LABEL):
            if not limit.isdecimal() or int(limit) < 1:
                at = f"metadata.labels[{LIMIT_LABEL}]"
                raise Refused(at, limit, "must be a whole number of seconds from 1")
            spec["runPolicy"] = _limited(spec.get("runPolicy") or {}, int(limit))
        spec["roles"] = [_near(_flavored(role, choices), look) for role in spec["roles"]]
        objects.append({**body, "spec": spec})
    return replace(made, objects=tuple(objects))


def _near(role: Json, look: Look) -> Json:
    """Return *role* with the levels of the network that its pods' annotations name."""
    notes = (role["template"].get("metadata") or {}).get("annotations") or {}
    for name in _SLICES:
        if name in notes:
            remedy = "slices of a pod set are not served; name a level for all of its pods"
            raise Refused(f"metadata.annotations[{name}]", notes[name], remedy)
    wish = by_labels(
        look,
        **{kind: (f"metadata.annotations[{n}]", notes.get(n, "")) for kind, n in _LEVELS.items()},
    )
    return {**role, "topology": wish} if wish else role


def _limited(policy: Json, seconds: int) -> Json:
    own = str(policy.get("activeDeadline", "")).removesuffix("s")
    least = min(seconds, int(own)) if own.isdecimal() else seconds
    return {**policy, "activeDeadline": f"{least}s"}


def _flavored(
    role: Json, choices: Sequence[tuple[list[str], dict[str, ResourceFlavorSpec]]]
) -> Json:
    """Return *role* with the labels and tolerations of the flavors of what its pods request."""
    template = role["template"]
    spec = {**template["spec"]}
    asked = _requested(spec)
    for names, flavors in choices:
        if asked.isdisjoint(names):
            continue
        fit = {name: one for name, one in flavors.items() if _fits(spec, one)}
        if not fit:
            allowed = "none of them fits: change the pods' nodeSelector or tolerations"
            raise Refused(_AT, ", ".join(flavors), allowed)
        extra = [to_builtins(t) for one in fit.values() for t in one.tolerations]
        if extra:
            spec["tolerations"] = [*(spec.get("tolerations") or []), *extra]
        labels = [one.node_labels for one in fit.values()]
        if len(labels) == 1 and labels[0]:
            spec["nodeSelector"] = {**(spec.get("nodeSelector") or {}), **labels[0]}
        elif all(labels):
            spec["affinity"] = _any_of(spec.get("affinity") or {}, labels)
    return {**role, "template": {**template, "spec": spec}}


def _requested(spec: Json) -> set[str]:
    """Return the resources that the containers of a pod *spec* ask for."""
    found: set[str] = set()
    for container in [*(spec.get("containers") or []), *(spec.get("initContainers") or [])]:
        resources = container.get("resources") or {}
        found |= {*(resources.get("requests") or {}), *(resources.get("limits") or {})}
    return found


def _fits(spec: Json, flavor: ResourceFlavorSpec) -> bool:
    """Say whether the pod's own selector and tolerations allow nodes of *flavor*."""
    wanted = spec.get("nodeSelector") or {}
    labels = flavor.node_labels
    if any(key in labels and labels[key] != value for key, value in wanted.items()):
        return False
    tolerated = [*(spec.get("tolerations") or []), *map(to_builtins, flavor.tolerations)]
    hard = [taint for taint in flavor.node_taints if taint.effect != "PreferNoSchedule"]
    return all(any(_tolerates(one, taint) for one in tolerated) for taint in hard)


def _tolerates(one: Json, taint: Taint) -> bool:
    if one.get("effect") not in (None, "", taint.effect) or one.get("key") not in (
        *((None, "") if one.get("operator") == "Exists" else ()),
        taint.key,
    ):
        return False
    return one.get("operator") == "Exists" or (one.get("value") or "") == taint.value


def _any_of(affinity: Json, labels: Sequence[Mapping[str, str]]) -> Json:
    """Return *affinity* with nodes that have one of the sets of *labels*, beside its own terms."""
    node = dict(affinity.get("nodeAffinity") or {})
    name = "requiredDuringSchedulingIgnoredDuringExecution"
    own = (node.get(name) or {}).get("nodeSelectorTerms") or [{}]
    terms = [
        {
            **term,
            "matchExpressions": [
                *(term.get("matchExpressions") or []),
                *({"key": k, "operator": "In", "values": [v]} for k, v in sorted(some.items())),
            ],
        }
        for term in own
        for some in labels
    ]
    return {**affinity, "nodeAffinity": {**node, name: {"nodeSelectorTerms": terms}}}


def placed(gang: Gang | None) -> bool:
    """Say whether *gang* has its place."""
    return gang is not None and gang.status.phase in _PLACED


def suspension(obj: AnyObject, job: TrainingJob, gang: Gang | None) -> Json | None:
    """Return the patch by which *obj* is let go or suspended again; none where it is as it must be.

    A job that stands suspended is let go once its gang is placed. One that ran and lost its place
    is suspended until it is placed again.
    """
    path = ("spec", "runPolicy") if "runPolicy" in obj.spec else ("spec",)
    holder = obj.spec if len(path) == 1 else obj.spec["runPolicy"]
    now = holder.get("suspend") if isinstance(holder, dict) else None
    has_place = placed(gang)
    phase, began = job.status.phase, bool(job.status.start_time)
    lost = began and (phase == "Suspended" or (phase == "Pending" and gang is not None))
    if now is True and has_place:
        wanted = False
    elif now is False and lost and not has_place:
        wanted = True
    else:
        return None
    patch: Json = {"suspend": wanted}
    for name in reversed(path):
        patch = {name: patch}
    return patch
