"""Kueue's queues as ours: amounts are summed over flavors."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from lockstep.api.core import AnyObject
from lockstep.api.quantity import parse
from lockstep.api.validation import Problem
from lockstep.api.wire import to_builtins
from lockstep.compat.kueue.admission import check_flavor, check_groups, check_selector
from lockstep.compat.kueue.objects import (
    ClusterQueueSpec,
    CohortSpec,
    FairSharing,
    LocalQueueSpec,
    ResourceFlavorSpec,
    ResourceGroup,
)
from lockstep.compat.pods import local_queue
from lockstep.compat.queues import IMPLIED, queue, queue_of, shown
from lockstep.compat.translation import Native, Refused, Translation, read

Json = dict[str, Any]


def cluster_queue(obj: AnyObject) -> Translation:
    """Return the Queue that stands for a ClusterQueue, and its cohort's where it names one.

    Raises:
        Refused: when something in it cannot be honoured.
    """
    spec = read(obj.spec, ClusterQueueSpec)
    cohort = spec.cohort_name or spec.cohort
    check_groups(spec.resource_groups, cohort, nominal_caps_lending=True)
    made = _amounts(spec.resource_groups)
    made |= _weight(spec.fair_sharing)
    if cohort:
        made["parent"] = cohort
    elif made.get("guaranteed"):
        # Without a cohort there is no one to borrow from.
        made["limit"] = made["guaranteed"]
        made.pop("borrowingLimit", None)
    within = spec.preemption.within_cluster_queue if spec.preemption else ""
    made["preemption"] = "Never" if within in ("", "Never") else "LowerPriority"
    selector = spec.namespace_selector
    check_selector(selector)
    if selector is None:
        # Kueue's own word for it: a selector that is not set matches no namespace.
        made["allowed"] = {}
    elif selector.match_labels or selector.match_expressions:
        made["allowed"] = {"namespaceSelector": to_builtins(selector)}
    own = queue(obj, obj.metadata.name, made)
    shared = queue(obj, cohort, {}, made_of=IMPLIED) if cohort else None
    return Translation((shared, own) if shared else (own,))


def cohort(obj: AnyObject) -> Translation:
    """Return the Queue that stands for a Cohort.

    Raises:
        Refused: when something in it cannot be honoured.
    """
    spec = read(obj.spec, CohortSpec)
    parent = spec.parent_name or spec.parent
    check_groups(spec.resource_groups, parent, nominal_caps_lending=False)
    made = _amounts(spec.resource_groups) | _weight(spec.fair_sharing)
    if parent:
        made["parent"] = parent
    return Translation((queue(obj, obj.metadata.name, made),))


def local(obj: AnyObject) -> Translation:
    """Return the Queue that stands for a LocalQueue: a part of its ClusterQueue's.

    Raises:
        Refused: when something in it cannot be honoured.
    """
    spec = read(obj.spec, LocalQueueSpec)
    name = local_queue(obj.metadata.namespace, obj.metadata.name)
    made = {"parent": spec.cluster_queue} | _weight(spec.fair_sharing)
    return Translation((queue(obj, name, made),))


def flavor(obj: AnyObject) -> Translation:
    """Return nothing: the jobs of its queues get its labels and tolerations.

    Raises:
        Refused: when something in it cannot be honoured.
    """
    check_flavor(read(obj.spec, ResourceFlavorSpec))
    return Translation()


def status_of(obj: AnyObject, natives: Sequence[Native], wrong: Sequence[Problem]) -> Json:
    """Return the status of *obj*, of which *natives* were made."""
    born = obj.metadata.creation_timestamp or ""
    text = "; and ".join(str(one) for one in wrong) or f"Can admit new workloads{_summed(obj)}"
    condition = {
        "type": "Active",
        "status": "False" if wrong else "True",
        "reason": "Refused" if wrong else "Ready",
        "message": text,
        "lastTransitionTime": born,
    }
    found = queue_of(natives)
    if found is None:
        return {"conditions": [condition]}
    return {
        "conditions": [condition],
        "pendingWorkloads": found.status.pending,
        "reservingWorkloads": found.status.running,
        "admittedWorkloads": found.status.running,
    }


def _summed(obj: AnyObject) -> str:
    """Return what is said of a ClusterQueue whose resources have several flavors."""
    groups = obj.spec.get("resourceGroups")
    listed = groups if isinstance(groups, list) else []
    names = [
        [str(one.get("name")) for one in group.get("flavors") or () if isinstance(one, dict)]
        for group in listed
        if isinstance(group, dict)
    ]
    several = ", ".join(name for some in names if len(some) > 1 for name in some)
    return f"; quota is summed over the flavors {several}" if several else ""


def _weight(sharing: FairSharing | None) -> Json:
    if sharing is None:
        return {}
    weight = _number(sharing.weight, "spec.fairSharing.weight")
    if weight != int(weight):
        raise Refused("spec.fairSharing.weight", sharing.weight, "must be a whole number")
    return {"weight": int(weight)}


def _amounts(groups: Sequence[ResourceGroup]) -> Json:
    """Return what is guaranteed, lent and borrowed of each resource, summed over flavors.

    A limit holds only where every flavor has one.
    """
    found: dict[str, list[tuple[str, Any]]] = {}
    for g, group in enumerate(groups):
        for f, flavor_ in enumerate(group.flavors):
            for r, one in enumerate(flavor_.resources):
                at = f"spec.resourceGroups[{g}].flavors[{f}].resources[{r}]"
                found.setdefault(one.name, []).append((at, one))
    made: Json = {}
    for theirs, field, ours in (
        ("nominal_quota", "nominalQuota", "guaranteed"),
        ("lending_limit", "lendingLimit", "lendingLimit"),
        ("borrowing_limit", "borrowingLimit", "borrowingLimit"),
    ):
        sums: dict[str, str] = {}
        for name, rows in found.items():
            amounts = [(f"{at}.{field}", getattr(one, theirs)) for at, one in rows]
            if all(value is not None for _, value in amounts):
                sums[name] = shown(sum(_number(value, at) for at, value in amounts))
        if sums:
            made[ours] = sums
    return made


def _number(value: object, at: str) -> Fraction:
    try:
        return parse(str(value))
    except ValueError as error:
        raise Refused(at, value, str(error)) from None
