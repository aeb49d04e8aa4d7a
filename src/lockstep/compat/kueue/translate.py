"""Kueue's queues as ours: amounts are summed over flavors."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Final

from lockstep.api.core import PRIORITY_CLASSES, AnyObject
from lockstep.api.quantity import parse
from lockstep.api.validation import Problem
from lockstep.api.wire import Json, to_builtins
from lockstep.compat.kueue.admission import check_flavor, check_groups, check_selector
from lockstep.compat.kueue.kinds import ADMISSION_CHECK, PriorityClass
from lockstep.compat.kueue.objects import (
    CheckRule,
    Checks,
    ClusterQueueSpec,
    CohortSpec,
    FairSharing,
    LocalQueueSpec,
    ResourceFlavorSpec,
    ResourceGroup,
    TopologySpec,
)
from lockstep.compat.pods import local_queue
from lockstep.compat.queues import made_of, queue, queue_of, shown
from lockstep.compat.tiers import by_labels
from lockstep.compat.translation import Look, Native, Refused, Translation, read

PROVISIONING: Final = "kueue.x-k8s.io/provisioning-request"
HELD: Final = ("Hold", "HoldAndDrain")
"""Stop policies that keep new workloads out."""


def cluster_queue(obj: AnyObject, look: Look) -> Translation:
    """Return the Queue that stands for a ClusterQueue, and its cohort's where it names one.

    Raises:
        Refused: when something in it cannot be honoured.
    """
    spec = read(obj.spec, ClusterQueueSpec)
    cohort = spec.cohort_name or spec.cohort
    check_groups(spec.resource_groups, cohort, nominal_caps_lending=True)
    _checks(spec, look)
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
    shared = queue(obj, cohort, {}, implied=True) if cohort else None
    return Translation((shared, own) if shared else (own,))


def _checks(spec: ClusterQueueSpec, look: Look) -> None:
    """Refuse checks but those for new nodes, which NodePools get for every gang that waits."""
    strategy = spec.admission_checks_strategy or Checks()
    rules = [*strategy.admission_checks, *(CheckRule(name) for name in spec.admission_checks)]
    flavors = {one.name for group in spec.resource_groups for one in group.flavors}
    for i, rule in enumerate(rules):
        at = f"spec.admissionChecksStrategy.admissionChecks[{i}]"
        for name in rule.on_flavors:
            if name not in flavors:
                allowed = f"must be of: {', '.join(sorted(flavors)) or 'none'}"
                raise Refused(f"{at}.onFlavors", name, allowed)
        found = look(ADMISSION_CHECK, "", rule.name)
        if found is None:
            raise Refused(f"{at}.name", rule.name, f"create the AdmissionCheck {rule.name}")
        controller = found.spec.get("controllerName")
        if controller != PROVISIONING:
            told = f"its controller, {controller}, is not served; served is: {PROVISIONING}"
            raise Refused(f"{at}.name", rule.name, told)


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


def priority(obj: AnyObject) -> Translation:
    """Return the PriorityClass that stands for a WorkloadPriorityClass."""
    value = obj.value if isinstance(obj, PriorityClass) else 0
    made: Json = {
        "apiVersion": PRIORITY_CLASSES.api_version,
        "kind": PRIORITY_CLASSES.kind,
        "metadata": {"name": obj.metadata.name, "annotations": made_of(obj)},
        "value": value,
    }
    return Translation((made,))


def priority_status(obj: AnyObject, natives: Sequence[Native], wrong: Sequence[Problem]) -> Json:
    """Return the status of a WorkloadPriorityClass: what keeps it from being one, if anything."""
    return status_of(obj, natives, wrong) if wrong else {}


def topology(obj: AnyObject, look: Look) -> Translation:
    """Return nothing: pods name its levels, which are tiers of ours.

    Raises:
        Refused: for a label that no tier of the Topology has.
    """
    for i, level in enumerate(read(obj.spec, TopologySpec).levels):
        by_labels(look, required=(f"spec.levels[{i}].nodeLabel", level.node_label))
    return Translation()


def status_of(obj: AnyObject, natives: Sequence[Native], wrong: Sequence[Problem]) -> Json:
    """Return the status of *obj*, of which *natives* were made."""
    born = obj.metadata.creation_timestamp or ""
    text = "; and ".join(str(one) for one in wrong) or f"Can admit new workloads{_summed(obj)}"
    held = obj.spec.get("stopPolicy") in HELD
    if held and not wrong:
        text = f"stopPolicy {obj.spec['stopPolicy']} keeps new workloads out"
    condition = {
        "type": "Active",
        "status": "False" if wrong or held else "True",
        "reason": "Refused" if wrong else "Stopped" if held else "Ready",
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
    """Return what is said of a ClusterQueue that is followed in another way than Kueue's."""
    groups = obj.spec.get("resourceGroups")
    listed = groups if isinstance(groups, list) else []
    names = [
        [str(one.get("name")) for one in group.get("flavors") or () if isinstance(one, dict)]
        for group in listed
        if isinstance(group, dict)
    ]
    several = ", ".join(name for some in names if len(some) > 1 for name in some)
    told = f"; quota is summed over the flavors {several}" if several else ""
    within = (obj.spec.get("preemption") or {}).get("borrowWithinCohort") or {}
    if within.get("policy") == "LowerPriority":
        told += "; borrowWithinCohort is not followed: a queue that borrows evicts no other's jobs"
    return told


def _weight(sharing: FairSharing | None) -> Json:
    if sharing is None:
        return {}
    return {"weight": float(_number(sharing.weight, "spec.fairSharing.weight"))}


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
