"""PodGroups of Volcano, of coscheduling and of KAI as gangs: the pods are their users' own."""

from __future__ import annotations

from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Annotated, Any, Final

from msgspec import Meta

from lockstep.api.core import AnyObject
from lockstep.api.gang import GANGS, Gang
from lockstep.api.validation import Problem
from lockstep.api.wire import Json
from lockstep.compat.admission import different
from lockstep.compat.foreign_kinds import ForeignKind
from lockstep.compat.pods import queue_of
from lockstep.compat.tiers import NetworkTopology, by_hypernodes, by_labels
from lockstep.compat.translation import (
    Look,
    Native,
    Refused,
    Strict,
    Translation,
    read,
)

Count = Annotated[int, Meta(ge=0)]

VOLCANO: Final = ForeignKind(
    "scheduling.volcano.sh",
    "v1beta1",
    "PodGroup",
    "podgroups",
    short_names=("pg", "podgroup-v1beta1"),
    columns=(
        ("STATUS", "string", ".status.phase"),
        ("minMember", "integer", ".spec.minMember"),
        ("RUNNINGS", "integer", ".status.running"),
    ),
)
COSCHEDULING: Final = ForeignKind(
    "scheduling.x-k8s.io",
    "v1alpha1",
    "PodGroup",
    "podgroups",
    columns=(("Phase", "string", ".status.phase"), ("MinMember", "integer", ".spec.minMember")),
)
KAI: Final = ForeignKind("scheduling.run.ai", "v2alpha2", "PodGroup", "podgroups")
SUB_GROUP_LABEL: Final = "kai.scheduler/subgroup-name"


class VolcanoSpec(Strict, frozen=True):
    """What a PodGroup of Volcano says; what its pods ask for is read of these."""

    min_member: Count = 1
    min_resources: Json = {}
    queue: str = "default"
    priority_class_name: str = ""
    network_topology: NetworkTopology | None = None


class CoschedulingSpec(Strict, frozen=True):
    """What a PodGroup of coscheduling says; no part of a gang is held for the rest."""

    min_member: Count = 1
    min_resources: Json = {}
    schedule_timeout_seconds: Count | None = None


class TopologyConstraint(Strict, frozen=True):
    """Levels by the labels of nodes."""

    topology: str = ""
    required_topology_level: str = ""
    preferred_topology_level: str = ""


class SubGroup(Strict, frozen=True):
    """Pods of one role, or sub-groups that belong together."""

    name: Annotated[str, Meta(min_length=1)]
    min_member: Count = 1
    parent: str | None = None
    topology_constraint: TopologyConstraint | None = None


class KaiSpec(Strict, frozen=True):
    """What a PodGroup of KAI says."""

    min_member: Count = 1
    queue: str = "default"
    priority_class_name: str = ""
    topology_constraint: TopologyConstraint | None = None
    mark_unschedulable: bool | None = None
    scheduling_backoff: int | None = None
    preemptibility: str = ""
    sub_groups: list[SubGroup] = []


def volcano(obj: AnyObject) -> Translation:
    """Return a PodGroup of Volcano as a gang."""
    spec = read(obj.spec, VolcanoSpec)
    return gang(
        obj,
        spec.min_member,
        spec.queue,
        priorityClassName=spec.priority_class_name,
        topology=by_hypernodes(spec.network_topology),
    )


def coscheduling(obj: AnyObject) -> Translation:
    """Return a PodGroup of coscheduling as a gang."""
    spec = read(obj.spec, CoschedulingSpec)
    return gang(obj, spec.min_member, "")


def kai(obj: AnyObject, look: Look) -> Translation:
    """Return a PodGroup of KAI as a gang; *look* finds the tiers that it names.

    Raises:
        Refused: when something in it cannot be honoured.
    """
    spec = read(obj.spec, KaiSpec)
    made = {"priorityClassName": spec.priority_class_name}
    wish = _levels(spec.topology_constraint, "spec.topologyConstraint", look)
    if spec.sub_groups:
        groups = _groups(spec.sub_groups, look)
        return gang(obj, 0, spec.queue, groups=groups, topology=wish, **made)
    return gang(obj, spec.min_member, spec.queue, topology=wish, **made)


def _groups(subs: Sequence[SubGroup], look: Look) -> list[Json]:
    """Return the groups of a gang: sub-groups without others below them.

    Raises:
        Refused: for what KAI's webhook denies, and for a wish of sub-groups together.
    """
    at = "spec.subGroups"
    different(((f"{at}[{i}].name", one.name) for i, one in enumerate(subs)), "a sub-group")
    names = {one.name for one in subs}
    for i, one in enumerate(subs):
        if one.parent is not None and one.parent not in names:
            raise Refused(f"{at}[{i}].parent", one.parent, f"must be of: {', '.join(names)}")
    try:
        TopologicalSorter({one.name: [one.parent] if one.parent else [] for one in subs}).prepare()
    except CycleError as error:
        raise Refused(at, " below ".join(error.args[1]), "must have no cycle") from None
    parents = {one.parent for one in subs}
    found: list[Json] = []
    for i, one in enumerate(subs):
        wish = _levels(one.topology_constraint, f"{at}[{i}].topologyConstraint", look)
        if one.name in parents:
            if wish:
                told = "say it of the PodGroup, or of each sub-group below"
                raise Refused(f"{at}[{i}].topologyConstraint", one.name, told)
            continue
        selector = {"matchLabels": {SUB_GROUP_LABEL: one.name}}
        group: Json = {"name": one.name, "min": max(1, one.min_member), "selector": selector}
        found.append(group | ({"topology": wish} if wish else {}))
    return found


def _levels(wish: TopologyConstraint | None, at: str, look: Look) -> Json | None:
    if wish is None:
        return None
    return by_labels(
        look,
        required=(f"{at}.requiredTopologyLevel", wish.required_topology_level),
        preferred=(f"{at}.preferredTopologyLevel", wish.preferred_topology_level),
    )


def gang(obj: AnyObject, members: int, queue: str, **more: Any) -> Translation:
    """Return the Gang made of *obj*; of *more* of its spec what is empty is left out."""
    meta = obj.metadata
    spec: Json = {} if more.get("groups") else {"minMember": max(1, members)}
    if found := queue_of(meta.labels, meta.namespace) or queue:
        spec["queue"] = found
    spec |= {key: value for key, value in more.items() if value}
    made = {
        "apiVersion": GANGS.api_version,
        "kind": GANGS.kind,
        "metadata": {"name": meta.name, "namespace": meta.namespace},
        "spec": spec,
    }
    return Translation((made,))


_PHASES: Final = {
    VOLCANO.group: {"Pending": "Pending", "Placing": "Inqueue", "Failed": "Unknown"},
    COSCHEDULING.group: {"Placing": "Scheduling", "Placed": "Scheduled"},
}
_USUAL: Final = {
    VOLCANO.group: {"Placed": "Running", "Running": "Running", "Finished": "Completed"},
    COSCHEDULING.group: {},
}


def status_of(obj: AnyObject, natives: Sequence[Native], wrong: Sequence[Problem]) -> Json:
    """Return the status of *obj*, of which *natives* were made."""
    made = next((one for one in natives if isinstance(one, Gang)), None)
    group = obj.api_version.partition("/")[0]
    conditions = []
    told = "; and ".join(str(one) for one in wrong)
    reason = "Refused"
    if not told and made is not None and made.status.message:
        told, reason = made.status.message, made.status.reason or "NotEnoughResources"
    if told:
        conditions.append(
            {
                "type": "Unschedulable",
                "status": "True",
                "reason": reason,
                "message": told,
                "lastTransitionTime": obj.metadata.creation_timestamp or "",
            }
        )
    status: Json = {"conditions": conditions} if conditions else {}
    if made is None:
        return status
    phase = made.status.phase
    words = _PHASES.get(group, {}) | _USUAL.get(group, {})
    return {
        **status,
        "phase": words.get(phase, phase),
        "running": made.status.running,
        **({"scheduled": made.status.bound} if group == COSCHEDULING.group else {}),
    }
