"""What the remaining kinds may look like, and what of them may change."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

from lockstep.api.wire import Json
from lockstep.apiserver.builtin.rules.amounts import amount, quantity
from lockstep.apiserver.builtin.rules.metadata import IMMUTABLE, immutable
from lockstep.apiserver.builtin.rules.names import (
    config_key,
    dns_subdomain,
    label_value,
    needed,
    one_of,
    path_segment,
    problems,
    qualified_name,
)
from lockstep.apiserver.builtin.rules.selectors import selector
from lockstep.apiserver.builtin.rules.workloads import count_or_percent
from lockstep.apiserver.schema.causes import (
    Cause,
    Reason,
    forbidden,
    invalid,
    not_supported,
    required,
    show,
    too_long,
)

_LARGEST = 1024 * 1024
_HIGHEST_PRIORITY = 1_000_000_000
SYSTEM_PRIORITIES = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}
"""The priority classes whose names may begin with ``system-``, and their values."""
_ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_RBAC = "rbac.authorization.k8s.io"
_WHEN_SET = "field is immutable when `immutable` is set"
# Type of a secret, and which keys its data must have.
_SECRET_KEYS = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}
_ACCOUNT = "kubernetes.io/service-account.name"


def config_map(new: Json, old: Json | None) -> Iterator[Cause]:
    """Return what is wrong with a ConfigMap."""
    data, binary = new.get("data") or {}, new.get("binaryData") or {}
    yield from _keys(data, "data")
    yield from _keys(binary, "binaryData")
    yield from (
        invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
        for key in data
        if key in binary
    )
    size = sum(len(v.encode()) for v in data.values()) + sum(_decoded(v) for v in binary.values())
    if size > _LARGEST:
        yield too_long("[]", _LARGEST)
    yield from _frozen(new, old, ("data", "binaryData"))


def secret(new: Json, old: Json | None) -> Iterator[Cause]:
    """Return what is wrong with a secret."""
    data, sort = new.get("data") or {}, new.get("type") or ""
    yield from _keys(data, "data")
    if sum(_decoded(v) for v in data.values()) > _LARGEST:
        yield too_long("data", _LARGEST)
    yield from (
        required(f"data[{key}]")
        for key in _SECRET_KEYS.get(sort, ())
        if not data.get(key) and (key not in data or sort.endswith("ssh-auth"))
    )
    if sort == "kubernetes.io/basic-auth" and not data.keys() & {"username", "password"}:
        yield required("data[username]")
        yield required("data[password]")
    marks = (new.get("metadata") or {}).get("annotations") or {}
    if sort == "kubernetes.io/service-account-token" and not marks.get(_ACCOUNT):
        yield required(f"metadata.annotations[{_ACCOUNT}]")
    for key in (".dockercfg", ".dockerconfigjson"):
        if key in _SECRET_KEYS.get(sort, ()) and key in data and not _is_json_object(data[key]):
            text = "invalid character looking for beginning of value"
            yield invalid(f"data[{key}]", "<secret contents redacted>", text)
    if old is not None:
        yield from immutable(new.get("type"), old.get("type"), "type")
    yield from _frozen(new, old, ("data",))


def _keys(data: Json, path: str) -> list[Cause]:
    return [invalid(f"{path}[{key}]", key, error) for key in data for error in config_key(key)]


def _decoded(text: str) -> int:
    return len(text) * 3 // 4 - text[-2:].count("=")


def _is_json_object(text: str) -> bool:
    try:
        return isinstance(json.loads(base64.b64decode(text)), dict)
    except ValueError:
        return False


def _frozen(new: Json, old: Json | None, names: tuple[str, ...]) -> Iterator[Cause]:
    if old is None or not old.get("immutable"):
        return
    yield from [] if new.get("immutable") else [forbidden("immutable", _WHEN_SET)]
    yield from (forbidden(n, _WHEN_SET) for n in names if new.get(n) != old.get(n))


def node(new: Json, old: Json | None) -> list[Cause]:
    """Return what is wrong with a node."""
    causes: list[Cause] = []
    seen: set[tuple[Any, Any]] = set()
    for position, taint in enumerate((new.get("spec") or {}).get("taints") or ()):
        causes += _taint(taint, seen, f"metadata.taints[{position}]")
    if old is not None:
        causes = causes * 2  # an update is looked at as a new node, too
    status = new.get("status") or {}
    for name, given in (status.get("capacity") or {}).items():
        causes += amount(name, given, f"status.capacity.{name}")
    for name, given in (status.get("allocatable") or {}).items():
        causes += amount(name, given, f"status.allocatable.{name}")
    return causes


def _taint(taint: Json, seen: set[tuple[Any, Any]], path: str) -> Iterator[Cause]:
    key, value = taint.get("key") or "", taint.get("value") or ""
    yield from problems(f"{path}.key", key, qualified_name)
    if errors := label_value(value):
        yield invalid(f"{path}.value", value, ";".join(errors))
    effect, effects = taint.get("effect"), ("NoSchedule", "PreferNoSchedule", "NoExecute")
    if not effect:
        yield required(f"{path}.effect")
    elif effect not in effects:
        yield not_supported(f"{path}.effect", effect, effects)
    if (key, effect) in seen:
        text = f"Duplicate value: {show(taint)}: taints must be unique by key and effect pair"
        yield Cause(path, Reason.DUPLICATE, text)
    seen.add((key, effect))


def claim(new: Json, old: Json | None) -> Iterator[Cause]:
    """Return what is wrong with a claim for a volume."""
    spec = new.get("spec") or {}
    if old is not None:
        yield from _claim_change(spec, old.get("spec") or {})
        return
    modes = spec.get("accessModes") or []
    if not modes:
        yield required("spec.accessModes", "at least 1 access mode is required")
    yield from (
        not_supported("spec.accessModes", mode, _ACCESS_MODES)
        for mode in modes
        if mode not in _ACCESS_MODES
    )
    if "ReadWriteOncePod" in modes and len(set(modes)) > 1:
        text = "may not use ReadWriteOncePod with other access modes"
        yield forbidden("spec.accessModes", text)
    name, mode = spec.get("storageClassName"), spec.get("volumeMode", "Filesystem")
    if name:
        yield from problems("spec.storageClassName", name, dns_subdomain)
    yield from one_of("spec.volumeMode", mode, ("Block", "Filesystem"))
    yield from selector(spec.get("selector"), "spec.selector")
    path = "spec.resources[storage]"
    wanted = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if wanted is None:
        yield required(path)
    elif (quantity(wanted) or 0) <= 0:
        yield invalid(path, str(wanted), "must be greater than zero")


def _claim_change(new: Json, old: Json) -> list[Cause]:
    # A claim may be bound and may grow.
    free = ("resources", "volumeName", "volumeAttributesClassName")
    changed = [n for n in new.keys() | old.keys() if new.get(n) != old.get(n) and n not in free]
    if not changed:
        return []
    text = (
        "spec is immutable after creation except resources.requests and "
        "volumeAttributesClassName for bound claims"
    )
    return [forbidden("spec", text)]


def lease(new: Json, _old: Json | None) -> Iterator[Cause]:
    """Return what is wrong with a lease."""
    spec = new.get("spec") or {}
    duration, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    if duration is not None and duration <= 0:
        yield invalid("spec.leaseDurationSeconds", duration, "must be greater than 0")
    if transitions is not None and transitions < 0:
        text = "must be greater than or equal to 0"
        yield invalid("spec.leaseTransitions", transitions, text)


def priority_class(new: Json, old: Json | None) -> list[Cause]:
    """Return what is wrong with a priority class."""
    value, policy = new.get("value", 0), new.get("preemptionPolicy")
    if old is not None:
        causes = []
        if value != old.get("value", 0):
            causes.append(forbidden("value", "may not be changed in an update."))
        return [*causes, *immutable(policy, old.get("preemptionPolicy"), "preemptionPolicy")]
    causes = []
    name = (new.get("metadata") or {}).get("name") or ""
    if name.startswith("system-"):
        if wrong := _not_of_the_system(name, value, bool(new.get("globalDefault"))):
            text = "priority class names with 'system-' prefix are reserved for system use only."
            causes.append(forbidden("metadata.name", f"{text} error: {wrong}"))
    elif value > _HIGHEST_PRIORITY:
        text = f"maximum allowed value of a user defined priority is {_HIGHEST_PRIORITY}"
        causes.append(forbidden("value", text))
    choices = ("Never", "PreemptLowerPriority")
    if policy not in choices:
        causes.append(not_supported("preemptionPolicy", policy, choices))
    return causes


def _not_of_the_system(name: str, value: int, everybodys: bool) -> str:
    known = SYSTEM_PRIORITIES.get(name)
    if known is None:
        return f"{name} is not a known system priority class"
    if value != known:
        return f"value of {name} PriorityClass must be {known}"
    return f"globalDefault of {name} PriorityClass must be false" if everybodys else ""


def budget(new: Json, _old: Json | None) -> Iterator[Cause]:
    """Return what is wrong with a disruption budget."""
    spec = new.get("spec") or {}
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        text = "minAvailable and maxUnavailable cannot be both set"
        yield invalid("spec", spec, text)
    for name in ("minAvailable", "maxUnavailable"):
        if (value := spec.get(name)) is not None:
            yield from count_or_percent(value, f"spec.{name}")
    yield from selector(spec.get("selector"), "spec.selector")


def autoscaler(new: Json, _old: Json | None) -> Iterator[Cause]:
    """Return what is wrong with the limits of an autoscaler, of either version."""
    spec = new.get("spec") or {}
    least, most = spec.get("minReplicas"), spec.get("maxReplicas") or 0
    if least is not None and least < 1:
        yield invalid("spec.minReplicas", least, "must be greater than or equal to 1")
    if most == 0:
        yield required("spec.maxReplicas", "must be set and greater than 0")
    elif most < 0:
        text = "must be greater than or equal to 1"
        yield invalid("spec.maxReplicas", most, text)
    if least is not None and most < least:
        text = "must be greater than or equal to `minReplicas`"
        yield invalid("spec.maxReplicas", most, text)
    target = spec.get("scaleTargetRef") or {}
    yield from (
        required(f"spec.scaleTargetRef.{name}") for name in ("kind", "name") if not target.get(name)
    )


def role(new: Json, _old: Json | None) -> Iterator[Cause]:
    """Return what is wrong with the rules of a role."""
    for position, rule in enumerate(new.get("rules") or ()):
        yield from _rule(rule, f"rules[{position}]", namespaced=new.get("kind") == "Role")


def _rule(rule: Json, path: str, *, namespaced: bool) -> Iterator[Cause]:
    if not rule.get("verbs"):
        yield required(f"{path}.verbs", "verbs must contain at least one value")
    groups, resources = rule.get("apiGroups"), rule.get("resources")
    if urls := rule.get("nonResourceURLs"):
        at = f"{path}.nonResourceURLs"
        if namespaced:
            text = "namespaced rules cannot apply to non-resource URLs"
            yield invalid(at, urls, text)
        if groups or resources or rule.get("resourceNames"):
            text = "rules cannot apply to both regular resources and non-resource URLs"
            yield invalid(at, urls, text)
        return
    if not groups:
        text = "resource rules must supply at least one api group"
        yield required(f"{path}.apiGroups", text)
    if not resources:
        text = "resource rules must supply at least one resource"
        yield required(f"{path}.resources", text)


def role_binding(new: Json, old: Json | None) -> Iterator[Cause]:
    """Return what is wrong with a binding of a role, or that its role has changed."""
    bound = new.get("roleRef") or {}
    namespaced = new.get("kind") == "RoleBinding"
    kinds = ("Role", "ClusterRole") if namespaced else ("ClusterRole",)
    if bound.get("apiGroup") != _RBAC:
        yield not_supported("roleRef.apiGroup", bound.get("apiGroup"), (_RBAC,))
    if bound.get("kind") not in kinds:
        yield not_supported("roleRef.kind", bound.get("kind") or "", kinds)
    name = bound.get("name")
    yield from needed("roleRef.name", name, path_segment)
    for position, each in enumerate(new.get("subjects") or ()):
        yield from _subject(each, f"subjects[{position}]", namespaced=namespaced)
    if old is not None and old.get("roleRef") != bound:
        names = {"apiGroup": "APIGroup", "kind": "Kind", "name": "Name"}
        shown = {names[key]: value for key, value in bound.items()}
        yield invalid("roleRef", shown, "cannot change roleRef")


def _subject(each: Json, path: str, *, namespaced: bool) -> Iterator[Cause]:
    name, kind, group = each.get("name"), each.get("kind"), each.get("apiGroup") or ""
    if not name:
        yield required(f"{path}.name")
    if kind == "ServiceAccount":
        if name:
            yield from problems(f"{path}.name", name, dns_subdomain)
        if group:
            yield not_supported(f"{path}.apiGroup", group, ("",))
        if not namespaced and not each.get("namespace"):
            yield required(f"{path}.namespace")
    elif kind not in ("User", "Group"):
        kinds = ("ServiceAccount", "User", "Group")
        yield not_supported(f"{path}.kind", kind or "", kinds)
    elif group != _RBAC:
        yield not_supported(f"{path}.apiGroup", group, (_RBAC,))


def storage_class(new: Json, old: Json | None) -> list[Cause]:
    """Return what is wrong with a storage class."""
    if old is None:
        return [] if new.get("provisioner") else [required("provisioner")]
    return [
        forbidden(name, "updates to " + name + " are forbidden.")
        if name in ("parameters", "provisioner")
        else invalid(name, new.get(name), IMMUTABLE)
        for name in ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode")
        if new.get(name) != old.get(name)
    ]


RULES = {
    "ConfigMap": config_map,
    "Secret": secret,
    "Node": node,
    "PersistentVolumeClaim": claim,
    "Lease": lease,
    "PriorityClass": priority_class,
    "HorizontalPodAutoscaler": autoscaler,
    "PodDisruptionBudget": budget,
    "Role": role,
    "ClusterRole": role,
    "RoleBinding": role_binding,
    "ClusterRoleBinding": role_binding,
    "StorageClass": storage_class,
}
