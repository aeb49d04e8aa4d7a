"""Resource quotas: what an object uses of one, and whether one more fits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lockstep.api.wire import Json
from lockstep.apiserver.builtin.quality import quality_of_service
from lockstep.apiserver.deletion import FINISHED
from lockstep.apiserver.limits.amounts import NOTHING, ONE, Amount, Amounts, of_pod, read

_COUNTED_BY_NAME = frozenset(
    {
        *("configmaps", "persistentvolumeclaims", "pods", "replicationcontrollers"),
        *("resourcequotas", "secrets", "services"),
    }
)
_ON_BOTH_SIDES = frozenset({"cpu", "memory", "ephemeral-storage"})
_MUST_SAY = frozenset(
    {"cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"}
)
_CLASS = ".storageclass.storage.k8s.io/"


def usage(storage: str, obj: Json) -> Amounts:
    """Return what *obj* uses, by the names that quotas have for it."""
    counted: Amounts = {f"count/{storage}": ONE}
    if storage == "pods":
        return counted | (_of_pod(obj.get("spec") or {}) if _runs(obj) else {})
    if storage in _COUNTED_BY_NAME:
        counted[storage] = ONE
    if storage == "services":
        counted |= _of_service(obj.get("spec") or {})
    elif storage == "persistentvolumeclaims":
        counted |= _of_claim(obj.get("spec") or {})
    return counted


def _runs(pod: Json) -> bool:
    return (pod.get("status") or {}).get("phase") not in FINISHED


def _of_pod(spec: Json) -> Amounts:
    found: Amounts = {"pods": ONE}
    for name, amount in of_pod(spec, "requests").items():
        found[f"requests.{name}"] = amount
        if name in _ON_BOTH_SIDES or name.startswith("hugepages-"):
            found[name] = amount
    for name, amount in of_pod(spec, "limits").items():
        if name in _ON_BOTH_SIDES:
            found[f"limits.{name}"] = amount
    return found


def _of_service(spec: Json) -> Amounts:
    sort = spec.get("type")
    on_nodes = Amount(ONE.value * len(spec.get("ports") or ()))
    if sort == "NodePort":
        return {"services.nodeports": on_nodes}
    if sort != "LoadBalancer":
        return {}
    allocates = spec.get("allocateLoadBalancerNodePorts") is not False
    given = sum(1 for port in spec.get("ports") or () if port.get("nodePort"))
    ports = on_nodes if allocates else Amount(ONE.value * given)
    return {"services.loadbalancers": ONE, "services.nodeports": ports}


def _of_claim(spec: Json) -> Amounts:
    found: Amounts = {}
    storage = read((spec.get("resources") or {}).get("requests")).get("storage")
    if storage is not None:
        found["requests.storage"] = storage
    if name := spec.get("storageClassName"):
        found[f"{name}{_CLASS}persistentvolumeclaims"] = ONE
        if storage is not None:
            found[f"{name}{_CLASS}requests.storage"] = storage
    return found


def concerns(quota: Json, storage: str, obj: Json) -> bool:
    """Return whether *obj* is in the scope of *quota*."""
    spec = quota.get("spec") or {}
    wanted = [{"scopeName": name, "operator": "Exists"} for name in spec.get("scopes") or ()]
    wanted += (spec.get("scopeSelector") or {}).get("matchExpressions") or ()
    # Only pods have properties that scopes select by.
    return not wanted or (storage == "pods" and all(_matches(one, obj) for one in wanted))


def _matches(wanted: Json, pod: Json) -> bool:
    spec = pod.get("spec") or {}
    match wanted.get("scopeName"):
        case "Terminating":
            return spec.get("activeDeadlineSeconds") is not None
        case "NotTerminating":
            return spec.get("activeDeadlineSeconds") is None
        case "BestEffort":
            return quality_of_service(spec) == "BestEffort"
        case "NotBestEffort":
            return quality_of_service(spec) != "BestEffort"
        case "PriorityClass":
            return _has_priority(wanted, spec.get("priorityClassName") or "")
        case "CrossNamespacePodAffinity":
            return any(_reaches_out(spec.get("affinity") or {}))
    return False


def _has_priority(wanted: Json, name: str) -> bool:
    values = wanted.get("values") or ()
    match wanted.get("operator"):
        case "In":
            return name in values
        case "NotIn":
            return name not in values
        case "Exists":
            return bool(name)
        case "DoesNotExist":
            return not name
    return False


def _reaches_out(affinity: Json) -> Iterator[bool]:
    for sort in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(sort) or {}
        preferred = terms.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        yield from (
            bool(term.get("namespaces")) or term.get("namespaceSelector") is not None
            for term in (
                *(terms.get("requiredDuringSchedulingIgnoredDuringExecution") or ()),
                *(one.get("podAffinityTerm") or {} for one in preferred),
            )
        )


def unsaid(quota: Json, pod: Json) -> str:
    """Return what containers must say because *quota* limits it, or nothing."""
    spec = pod.get("spec") or {}
    whole = spec.get("resources") or {}
    missing: dict[str, list[str]] = {}
    for name in sorted(_MUST_SAY.intersection(hard(quota))):
        side, _, resource = name.rpartition(".")
        side = side or "requests"
        if resource in (whole.get(side) or {}):
            continue
        for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
            given = (container.get("resources") or {}).get(side) or {}
            if resource not in given:
                missing.setdefault(name, []).append(container.get("name", ""))
    said = "; ".join(f"{name} for: {','.join(names)}" for name, names in missing.items())
    return f"failed quota: {quota['metadata']['name']}: must specify {said}" if said else ""


def excess(quota: Json, used: Mapping[str, Amount], more: Amounts) -> str:
    """Return in which way *more* does not fit into what *quota* has left, or nothing."""
    limited = hard(quota)
    over = sorted(
        name
        for name, amount in more.items()
        if name in limited
        and amount.value > 0
        and used.get(name, NOTHING).value + amount.value > limited[name].value
    )
    if not over:
        return ""
    shown = (
        ",".join(f"{name}={amounts.get(name, NOTHING)}" for name in over)
        for amounts in (more, used, limited)
    )
    requested, taken, allowed = shown
    return (
        f"exceeded quota: {quota['metadata']['name']}, requested: {requested}, "
        f"used: {taken}, limited: {allowed}"
    )


def hard(quota: Json) -> Amounts:
    """Return the limits that *quota* sets."""
    return read((quota.get("spec") or {}).get("hard"))
