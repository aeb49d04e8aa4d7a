"""PodGroups of Volcano, of coscheduling and of KAI as gangs: the pods are their users' own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Final, Literal

from msgspec import Meta

from lockstep.api.core import AnyObject
from lockstep.api.gang import GANGS, Gang
from lockstep.api.validation import Problem
from lockstep.compat.foreign_kinds import ForeignKind
from lockstep.compat.pods import queue_of
from lockstep.compat.translation import (
    Native,
    Refused,
    Source,
    Strict,
    Translation,
    read,
    translating,
)

Json = dict[str, Any]
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


class NetworkTopology(Strict, frozen=True):
    """How close together the pods must or should be, by tiers of HyperNodes."""

    mode: Literal["hard", "soft", ""] = "hard"
    highest_tier_allowed: Annotated[int, Meta(ge=1)] | None = None
    highest_tier_name: str = ""


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


class KaiSpec(Strict, frozen=True):
    """What a PodGroup of KAI says."""

    min_member: Count = 1
    queue: str = "default"
    priority_class_name: str = ""
    topology_constraint: TopologyConstraint | None = None
    mark_unschedulable: bool | None = None
    scheduling_backoff: int | None = None
    preemptibility: str = ""


def _volcano(obj: AnyObject) -> Translation:
    spec = read(obj.spec, VolcanoSpec)
    return _gang(
        obj,
        spec.min_member,
        spec.queue,
        priorityClassName=spec.priority_class_name,
        topology=_tiers(spec.network_topology),
    )


def _tiers(wish: NetworkTopology | None) -> Json:
    if wish is None:
        return {}
    tier = wish.highest_tier_name
    if not tier and wish.highest_tier_allowed is not None:
        tier = f"tier-{wish.highest_tier_allowed}"
    if not tier:
        return {"preferred": "tier-1"}
    return {"preferred" if wish.mode == "soft" else "required": tier}


def _coscheduling(obj: AnyObject) -> Translation:
    spec = read(obj.spec, CoschedulingSpec)
    return _gang(obj, spec.min_member, "")


def _kai(obj: AnyObject) -> Translation:
    spec = read(obj.spec, KaiSpec)
    wish = spec.topology_constraint
    if wish is not None and (wish.required_topology_level or wish.preferred_topology_level):
        given = wish.required_topology_level or wish.preferred_topology_level
        remedy = "levels are labels of nodes there; say it of a Gang by a tier of the Topology"
        raise Refused("spec.topologyConstraint", given, remedy)
    return _gang(obj, spec.min_member, spec.queue, priorityClassName=spec.priority_class_name)


def _gang(obj: AnyObject, members: int, queue: str, **more: Any) -> Translation:
    meta = obj.metadata
    spec: Json = {"minMember": max(1, members)}
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
    gang = next((one for one in natives if isinstance(one, Gang)), None)
    group = obj.api_version.partition("/")[0]
    conditions = []
    told = "; and ".join(str(one) for one in wrong)
    reason = "Refused"
    if not told and gang is not None and gang.status.message:
        told, reason = gang.status.message, gang.status.reason or "NotEnoughResources"
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
    if gang is None:
        return status
    phase = gang.status.phase
    words = _PHASES.get(group, {}) | _USUAL.get(group, {})
    return {
        **status,
        "phase": words.get(phase, phase),
        "running": gang.status.running,
        **({"scheduled": gang.status.bound} if group == COSCHEDULING.group else {}),
    }


def source(kind: ForeignKind, translate: Callable[[AnyObject], Translation]) -> Source:
    """Return *kind* as one that is served."""
    return Source(kind, translating(translate), status_of)


VOLCANO_SOURCE: Final = source(VOLCANO, _volcano)
COSCHEDULING_SOURCE: Final = source(COSCHEDULING, _coscheduling)
KAI_SOURCE: Final = source(KAI, _kai)
