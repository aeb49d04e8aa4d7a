"""Kubernetes' PodGroups as gangs.

Facts: k8s.io/api v0.37 scheduling/v1beta1. A PodGroup carries the policy of the Workload that it
was made from.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, Literal

from msgspec import Meta

from lockstep.api.core import AnyObject
from lockstep.api.gang import Gang
from lockstep.api.validation import Problem
from lockstep.api.wire import Json
from lockstep.compat.podgroups import gang
from lockstep.compat.tiers import by_labels
from lockstep.compat.translation import Look, Native, Refused, Strict, Translation, read

SCHEDULED: Final = "PodGroupInitiallyScheduled"
_PLACED: Final = ("Placed", "Running", "Finished")


class GangPolicy(Strict, frozen=True):
    """Pods that start together."""

    min_count: Annotated[int, Meta(ge=1)] = 1


class Policy(Strict, frozen=True):
    """How the pods are placed: each for itself, or so many together."""

    basic: Json | None = None
    gang: GangPolicy | None = None


class TopologyConstraint(Strict, frozen=True):
    """A label of nodes whose value all pods must share."""

    key: str


class Constraints(Strict, frozen=True):
    """Where the pods must stand."""

    topology: list[TopologyConstraint] = []


class PodGroupSpec(Strict, frozen=True):
    """What a PodGroup says, as far as it is honoured."""

    scheduling_policy: Policy = Policy()
    scheduling_constraints: Constraints | None = None
    workload_ref: Json | None = None
    pod_group_template_ref: Json | None = None
    """What ``workloadRef`` is called in 1.36."""
    disruption_mode: Json | str | None = None
    priority_class_name: str = ""
    priority: int | None = None
    preemption_policy: Literal["PreemptLowerPriority", ""] = ""


def to_native(obj: AnyObject, look: Look) -> Translation:
    """Return *obj* as a Gang.

    Raises:
        Refused: when something in it cannot be honoured.
    """
    spec = read(obj.spec, PodGroupSpec)
    policy = spec.scheduling_policy
    if (policy.gang is None) == (policy.basic is None):
        raise Refused("spec.schedulingPolicy", None, "must be either gang or basic")
    if spec.priority is not None and not spec.priority_class_name:
        raise Refused("spec.priority", spec.priority, "is said by priorityClassName")
    return gang(
        obj,
        policy.gang.min_count if policy.gang else 1,
        "",
        priorityClassName=spec.priority_class_name,
        topology=_wish(spec.scheduling_constraints, look),
    )


def status_of(obj: AnyObject, natives: Sequence[Native], wrong: Sequence[Problem]) -> Json:
    """Return the status of *obj*, of which *natives* were made."""
    made = next((one for one in natives if isinstance(one, Gang)), None)
    told = "; and ".join(map(str, wrong))
    if made is None and not told:
        return {}
    placed = made is not None and made.status.phase in _PLACED
    if made is not None and not told:
        told = made.status.message
    condition: Json = {
        "type": SCHEDULED,
        "status": "True" if placed else "False",
        "reason": "Refused" if wrong else "Scheduled" if placed else "Unschedulable",
        "message": "" if placed else told,
        "lastTransitionTime": (made.status.placed_at if placed and made is not None else None)
        or obj.metadata.creation_timestamp
        or "",
    }
    return {"conditions": [condition]}


def _wish(constraints: Constraints | None, look: Look) -> Json | None:
    if constraints is None or not constraints.topology:
        return None
    at = "spec.schedulingConstraints.topology"
    if len(constraints.topology) > 1:
        raise Refused(at, len(constraints.topology), "must be one label")
    return by_labels(look, required=(f"{at}[0].key", constraints.topology[0].key))
