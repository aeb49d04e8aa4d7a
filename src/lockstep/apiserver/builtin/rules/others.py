"""What the remaining kinds may look like, and what of them may change."""

from __future__ import annotations

import base64
import json
from typing import Any

from lockstep.apiserver.builtin.rules.amounts import amount, quantity
from lockstep.apiserver.builtin.rules.metadata import IMMUTABLE, immutable
from lockstep.apiserver.builtin.rules.names import (
    config_key,
    dns_subdomain,
    label_value,
    path_segment,
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

Json = dict[str, Any]

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


def config_map(new: Json, old: Json | None) -> list[Cause]:
    """Return what is wrong with a ConfigMap."""
    data, binary = new.get("data") or {}, new.get("binaryData") or {}
    causes = [*_keys(data, "data"), *_keys(binary, "binaryData")]
    causes += [
        invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
        for key in data
        if key in binary
    ]
    size = sum(len(v.encode()) for v in data.values()) + sum(_decoded(v) for v in binary.values())
    if size > _LARGEST:
        causes.append(too_long("[]", _LARGEST))
    return [*causes, *_frozen(new, old, ("data", "binaryData"))]


def secret(new: Json, old: Json | None) -> list[Cause]:
    """Return what is wrong with a secret."""
    data, sort = new.get("data") or {}, new.get("type") or ""
    causes = _keys(data, "data")
    if sum(_decoded(v) for v in data.values()) > _LARGEST:
        causes.append(too_long("data", _LARGEST))
    causes += [
        required(f"data[{key}]")
        for key in _SECRET_KEYS.get(sort, ())
        if not data.get(key) and (key not in data or sort.endswith("ssh-auth"))
    ]
    if sort == "kubernetes.io/basic-auth" and not data.keys() & {"username", "password"}:
        causes += [required("data[username]"), required("data[password]")]
    marks = (new.get("metadata") or {}).get("annotations") or {}
    if sort == "kubernetes.io/service-account-token" and not marks.get(_ACCOUNT):
        causes.append(required(f"metadata.annotations[{_ACCOUNT}]"))
    for key in (".dockercfg", ".dockerconfigjson"):
        if key in _SECRET_KEYS.get(sort, ()) and key in data and not _is_json_object(data[key]):
            text = "invalid character looking for beginning of value"
            causes.append(invalid(f"data[{key}]", "<secret contents redacted>", text))
    if old is not None:
        causes += immutable(new.get("type"), old.get("type"), "type")
    return [*causes, *_frozen(new, old, ("data",))]


def _keys(data: Json, path: str) -> list[Cause]:
    return [invalid(f"{path}[{key}]", key, error) for key in data for error in config_key(key)]


def _decoded(text: str) -> int:
    return len(text) * 3 // 4 - text[-2:].count("=")


def _is_json_object(text: str) -> bool:
    try:
        return isinstance(json.loads(base64.b64decode(text)), dict)
    except ValueError:
        return False


def _frozen(new: Json, old: Json | None, names: tuple[str, ...]) -> list[Cause]:
    if old is None or not old.get("immutable"):
        return []
    causes = [] if new.get("immutable") else [forbidden("immutable", _WHEN_SET)]
    return [*causes, *(forbidden(n, _WHEN_SET) for n in names if new.get(n) != old.get(n))]


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


def _taint(taint: Json, seen: set[tuple[Any, Any]], path: str) -> list[Cause]:
    key, value = taint.get("key") or "", taint.get("value") or ""
    causes = [invalid(f"{path}.key", key, error) for error in qualified_name(key)]
    if errors := label_value(value):
        causes.append(invalid(f"{path}.value", value, ";".join(errors)))
    effect, effects = taint.get("effect"), ("NoSchedule", "PreferNoSchedule", "NoExecute")
    if not effect:
        causes.append(required(f"{path}.effect"))
    elif effect not in effects:
        causes.append(not_supported(f"{path}.effect", effect, effects))
    if (key, effect) in seen:
        text = f"Duplicate value: {show(taint)}: taints must be unique by key and effect pair"
        causes.append(Cause(path, Reason.DUPLICATE, text))
    seen.add((key, effect))
    return causes


def claim(new: Json, old: Json | None) -> list[Cause]:
    """Return what is wrong with a claim for a volume."""
    spec = new.get("spec") or {}
    if old is not None:
        return _claim_change(spec, old.get("spec") or {})
    modes = spec.get("accessModes") or []
    causes: list[Cause] = []
    if not modes:
        causes.append(required("spec.accessModes", "at least 1 access mode is required"))
    causes += [
        not_supported("spec.accessModes", mode, _ACCESS_MODES)
        for mode in modes
        if mode not in _ACCESS_MODES
    ]
    if "ReadWriteOncePod" in modes and len(set(modes)) > 1:
        text = "may not use ReadWriteOncePod with other access modes"
        causes.append(forbidden("spec.accessModes", text))
    name, mode = spec.get("storageClassName"), spec.get("volumeMode", "Filesystem")
    if name:
        causes += [invalid("spec.storageClassName", name, error) for error in dns_subdomain(name)]
    if mode not in ("Block", "Filesystem"):
        causes.append(not_supported("spec.volumeMode", mode, ("Block", "Filesystem")))
    causes += selector(spec.get("selector"), "spec.selector")
    path = "spec.resources[storage]"
    wanted = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if wanted is None:
        causes.append(required(path))
    elif (quantity(wanted) or 0) <= 0:
        causes.append(invalid(path, str(wanted), "must be greater than zero"))
    return causes


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


def lease(new: Json, _old: Json | None) -> list[Cause]:
    """Return what is wrong with a lease."""
    spec = new.get("spec") or {}
    causes: list[Cause] = []
    duration, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    if duration is not None and duration <= 0:
        causes.append(invalid("spec.leaseDurationSeconds", duration, "must be greater than 0"))
    if transitions is not None and transitions < 0:
        text = "must be greater than or equal to 0"
        causes.append(invalid("spec.leaseTransitions", transitions, text))
    return causes


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


def budget(new: Json, _old: Json | None) -> list[Cause]:
    """Return what is wrong with a disruption budget."""
    spec = new.get("spec") or {}
    causes: list[Cause] = []
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        text = "minAvailable and maxUnavailable cannot be both set"
        causes.append(invalid("spec", spec, text))
    for name in ("minAvailable", "maxUnavailable"):
        if (value := spec.get(name)) is not None:
            causes += count_or_percent(value, f"spec.{name}")
    return [*causes, *selector(spec.get("selector"), "spec.selector")]


def autoscaler(new: Json, _old: Json | None) -> list[Cause]:
    """Return what is wrong with the limits of an autoscaler, of either version."""
    spec = new.get("spec") or {}
    least, most = spec.get("minReplicas"), spec.get("maxReplicas") or 0
    causes = []
    if least is not None and least < 1:
        causes.append(invalid("spec.minReplicas", least, "must be greater than or equal to 1"))
    if most == 0:
        causes.append(required("spec.maxReplicas", "must be set and greater than 0"))
    elif most < 0:
        text = "must be greater than or equal to 1"
        causes.append(invalid("spec.maxReplicas", most, text))
    if least is not None and most < least:
        text = "must be greater than or equal to `minReplicas`"
        causes.append(invalid("spec.maxReplicas", most, text))
    target = spec.get("scaleTargetRef") or {}
    causes += [
        required(f"spec.scaleTargetRef.{name}") for name in ("kind", "name") if not target.get(name)
    ]
    return causes


def role(new: Json, _old: Json | None) -> list[Cause]:
    """Return what is wrong with the rules of a role."""
    causes: list[Cause] = []
    for position, rule in enumerate(new.get("rules") or ()):
        causes += _rule(rule, f"rules[{position}]", namespaced=new.get("kind") == "Role")
    return causes


def _rule(rule: Json, path: str, *, namespaced: bool) -> list[Cause]:
    causes: list[Cause] = []
    if not rule.get("verbs"):
        causes.append(required(f"{path}.verbs", "verbs must contain at least one value"))
    groups, resources = rule.get("apiGroups"), rule.get("resources")
    if urls := rule.get("nonResourceURLs"):
        at = f"{path}.nonResourceURLs"
        if namespaced:
            text = "namespaced rules cannot apply to non-resource URLs"
            causes.append(invalid(at, urls, text))
        if groups or resources or rule.get("resourceNames"):
            text = "rules cannot apply to both regular resources and non-resource URLs"
            causes.append(invalid(at, urls, text))
        return causes
    if not groups:
        text = "resource rules must supply at least one api group"
        causes.append(required(f"{path}.apiGroups", text))
    if not resources:
        text = "resource rules must supply at least one resource"
        causes.append(required(f"{path}.resources", text))
    return causes


def role_binding(new: Json, old: Json | None) -> list[Cause]:
    """Return what is wrong with a binding of a role, or that its role has changed."""
    bound = new.get("roleRef") or {}
    namespaced = new.get("kind") == "RoleBinding"
    kinds = ("Role", "ClusterRole") if namespaced else ("ClusterRole",)
    causes: list[Cause] = []
    if bound.get("apiGroup") != _RBAC:
        causes.append(not_supported("roleRef.apiGroup", bound.get("apiGroup"), (_RBAC,)))
    if bound.get("kind") not in kinds:
        causes.append(not_supported("roleRef.kind", bound.get("kind") or "", kinds))
    name = bound.get("name")
    if not name:
        causes.append(required("roleRef.name"))
    else:
        causes += [invalid("roleRef.name", name, error) for error in path_segment(name)]
    for position, each in enumerate(new.get("subjects") or ()):
        causes += _subject(each, f"subjects[{position}]", namespaced=namespaced)
    if old is not None and old.get("roleRef") != bound:
        names = {"apiGroup": "APIGroup", "kind": "Kind", "name": "Name"}
        shown = {names[key]: value for key, value in bound.items()}
        causes.append(invalid("roleRef", shown, "cannot change roleRef"))
    return causes


def _subject(each: Json, path: str, *, namespaced: bool) -> list[Cause]:
    causes: list[Cause] = []
    name, kind, group = each.get("name"), each.get("kind"), each.get("apiGroup") or ""
    if not name:
        causes.append(required(f"{path}.name"))
    if kind == "ServiceAccount":
        if name:
            causes += [invalid(f"{path}.name", name, error) for error in dns_subdomain(name)]
        if group:
            causes.append(not_supported(f"{path}.apiGroup", group, ("",)))
        if not namespaced and not each.get("namespace"):
            causes.append(required(f"{path}.namespace"))
    elif kind not in ("User", "Group"):
        kinds = ("ServiceAccount", "User", "Group")
        causes.append(not_supported(f"{path}.kind", kind or "", kinds))
    elif group != _RBAC:
        causes.append(not_supported(f"{path}.apiGroup", group, (_RBAC,)))
    return causes


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
