"""The roles and bindings that every cluster starts with.

What Lockstep's own parts may do stands in :mod:`lockstep.api.permissions`, for clusters as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from lockstep.api.permissions import PEOPLE, PERMISSIONS, rule
from lockstep.apiserver.auth.identity import AUTHENTICATED, MASTERS, UNAUTHENTICATED
from lockstep.apiserver.auth.rbac import GROUP
from lockstep.apiserver.auth.rules import Rule, missing

Json = dict[str, Any]
Rules = list[Json]

COMPONENT_USERS: Final[Mapping[str, str]] = {
    "scheduler": "lockstep:scheduler",
    "controllers": "lockstep:controllers",
    "process-node": "lockstep:process-node",
    "simulate-nodes": "lockstep:simulated-nodes",
}
"""Name of a part's kubeconfig, and the user that it acts as."""

_READ: Final = ("get", "list", "watch")
_CHANGE: Final = ("create", "delete", "deletecollection", "patch", "update")
_APPLY: Final = ("patch", "update")
_EVENTS: Final = ("", "events.k8s.io")
_LABELS: Final = {"kubernetes.io/bootstrapping": "rbac-defaults"}
_AUTOUPDATE: Final = "rbac.authorization.kubernetes.io/autoupdate"
_AGGREGATE: Final = "rbac.authorization.k8s.io/aggregate-to-"
_SCALED: Final = "deployments replicasets statefulsets"


def _paths(*urls: str) -> Json:
    return {"nonResourceURLs": list(urls), "verbs": ["get"]}


_RECORD_EVENTS: Final = rule(_EVENTS, "events", "create", *_APPLY)
_HEALTH: Final = ("/healthz", "/livez", "/readyz", "/version", "/version/")

_KUBE_SCHEDULER: Final[Rules] = [
    _RECORD_EVENTS,
    rule("coordination.k8s.io", "leases", "create"),
    rule("coordination.k8s.io", "leases", "list", "watch", "get", "update", names="kube-scheduler"),
    rule("", "nodes namespaces persistentvolumes persistentvolumeclaims", *_READ),
    rule("", "pods", "delete", *_READ),
    rule("", "bindings pods/binding", "create"),
    rule("", "pods/status", *_APPLY),
    rule("", "pods/finalizers", "update"),
    rule("", "replicationcontrollers services", *_READ),
    rule("apps", "replicasets statefulsets", *_READ),
    rule("policy", "poddisruptionbudgets", *_READ),
    rule("authentication.k8s.io", "tokenreviews", "create"),
    rule("authorization.k8s.io", "subjectaccessreviews", "create"),
    rule("storage.k8s.io", "csinodes volumeattachments csidrivers csistoragecapacities", *_READ),
    rule("resource.k8s.io", "deviceclasses resourceslices", *_READ),
    rule("resource.k8s.io", "resourceclaims", "create", "delete", *_APPLY, *_READ),
    rule("resource.k8s.io", "resourceclaims/status", *_APPLY, *_READ),
]

_KUBE_CONTROLLER_MANAGER: Final[Rules] = [
    rule(_EVENTS, "events", "create", *_APPLY),
    rule("coordination.k8s.io", "leases", "create"),
    rule("coordination.k8s.io", "leases", "get", "update", names="kube-controller-manager"),
    rule("", "secrets serviceaccounts", "create"),
    rule("", "secrets", "delete"),
    rule("", "configmaps namespaces secrets serviceaccounts", "get"),
    rule("", "secrets serviceaccounts", "update"),
    rule("authentication.k8s.io", "tokenreviews", "create"),
    rule("authorization.k8s.io", "subjectaccessreviews", "create"),
    rule("*", "*", "list", "watch"),
    rule("", "serviceaccounts/token", "create"),
]

_SYSTEM_NODE: Final[Rules] = [
    rule("authentication.k8s.io", "tokenreviews", "create"),
    rule("authorization.k8s.io", "localsubjectaccessreviews subjectaccessreviews", "create"),
    rule("", "services pods configmaps secrets", *_READ),
    rule("", "nodes", "create", *_APPLY, *_READ),
    rule("", "nodes/status pods/status", *_APPLY),
    _RECORD_EVENTS,
    rule("", "pods", "create", "delete"),
    rule("", "pods/eviction serviceaccounts/token", "create"),
    rule("", "persistentvolumeclaims persistentvolumes endpoints serviceaccounts", "get"),
    rule("certificates.k8s.io", "certificatesigningrequests", "create", *_READ),
    rule("coordination.k8s.io", "leases", "create", "delete", "get", *_APPLY),
    rule("storage.k8s.io", "volumeattachments", "get"),
    rule("", "persistentvolumeclaims/status", "get", *_APPLY),
    rule("storage.k8s.io", "csidrivers", *_READ),
    rule("storage.k8s.io", "csinodes", "create", "delete", "get", *_APPLY),
    rule("node.k8s.io", "runtimeclasses", *_READ),
    rule("resource.k8s.io", "resourceclaims", "get"),
    rule("resource.k8s.io", "resourceslices", "deletecollection"),
]

_VIEW: Final[Rules] = [
    rule("", "configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status", *_READ),
    rule("", "pods pods/log pods/status serviceaccounts services services/status", *_READ),
    rule("", "replicationcontrollers replicationcontrollers/scale", *_READ),
    rule("", "replicationcontrollers/status bindings limitranges namespaces", *_READ),
    rule("", "namespaces/status resourcequotas resourcequotas/status", *_READ),
    rule(_EVENTS, "events", *_READ),
    rule("discovery.k8s.io", "endpointslices", *_READ),
    rule("apps", f"controllerrevisions daemonsets daemonsets/status {_SCALED}", *_READ),
    rule("apps", "deployments/scale replicasets/scale statefulsets/scale", *_READ),
    rule("apps", "deployments/status replicasets/status statefulsets/status", *_READ),
    rule("autoscaling", "horizontalpodautoscalers horizontalpodautoscalers/status", *_READ),
    rule("batch", "cronjobs cronjobs/status jobs jobs/status", *_READ),
    rule("policy", "poddisruptionbudgets poddisruptionbudgets/status", *_READ),
    rule("networking.k8s.io", "ingresses ingresses/status networkpolicies", *_READ),
    rule("resource.k8s.io", "resourceclaims resourceclaims/status", *_READ),
    rule("resource.k8s.io", "resourceclaimtemplates", *_READ),
    *PEOPLE["view"],
]

_EDIT: Final[Rules] = [
    rule("", "pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy", *_READ),
    rule("", "serviceaccounts", "impersonate"),
    rule("", "pods pods/attach pods/exec pods/portforward pods/proxy", *_CHANGE),
    rule("", "pods/eviction serviceaccounts/token", "create"),
    rule("", "configmaps persistentvolumeclaims secrets serviceaccounts services", *_CHANGE),
    rule("", "replicationcontrollers replicationcontrollers/scale services/proxy", *_CHANGE),
    rule(_EVENTS, "events", *_CHANGE),
    rule("apps", f"daemonsets {_SCALED} deployments/rollback", *_CHANGE),
    rule("apps", "deployments/scale replicasets/scale statefulsets/scale", *_CHANGE),
    rule("autoscaling", "horizontalpodautoscalers", *_CHANGE),
    rule("batch", "cronjobs jobs", *_CHANGE),
    rule("policy", "poddisruptionbudgets", *_CHANGE),
    rule("networking.k8s.io", "ingresses networkpolicies", *_CHANGE),
    rule("coordination.k8s.io", "leases", *_CHANGE, *_READ),
    rule("resource.k8s.io", "resourceclaims resourceclaimtemplates", *_CHANGE),
    *PEOPLE["edit"],
]

_ADMIN: Final[Rules] = [
    rule("authorization.k8s.io", "localsubjectaccessreviews", "create"),
    rule(GROUP, "rolebindings roles", *_CHANGE, *_READ),
]

_BASIC_USER: Final[Rules] = [
    rule("authorization.k8s.io", "selfsubjectaccessreviews selfsubjectrulesreviews", "create"),
    rule("authentication.k8s.io", "selfsubjectreviews", "create"),
]

_ROLES: Final[Mapping[str, Rules]] = {
    "cluster-admin": [rule("*", "*", "*"), {"nonResourceURLs": ["*"], "verbs": ["*"]}],
    "system:basic-user": _BASIC_USER,
    "system:discovery": [
        _paths("/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*", *_HEALTH)
    ],
    "system:public-info-viewer": [_paths(*_HEALTH)],
    "system:monitoring": [
        _paths("/healthz", "/healthz/*", "/livez", "/livez/*", "/metrics", "/readyz", "/readyz/*"),
        rule("", "nodes/metrics", "get"),
    ],
    "system:node": _SYSTEM_NODE,
    "system:kube-scheduler": _KUBE_SCHEDULER,
    "system:kube-controller-manager": _KUBE_CONTROLLER_MANAGER,
    "system:service-account-issuer-discovery": [
        _paths("/.well-known/openid-configuration", "/.well-known/openid-configuration/")
    ],
    **{COMPONENT_USERS[part]: may.on_embedded() for part, may in PERMISSIONS.items()},
}

_AGGREGATED: Final[Mapping[str, tuple[Rules, str]]] = {
    "admin": (_ADMIN, ""),
    "edit": (_EDIT, "admin"),
    "view": (_VIEW, "edit"),
}

_BINDINGS: Final[Mapping[str, tuple[str, ...]]] = {
    "cluster-admin": (f"Group:{MASTERS}",),
    "system:basic-user": (f"Group:{AUTHENTICATED}",),
    "system:discovery": (f"Group:{AUTHENTICATED}",),
    "system:public-info-viewer": (f"Group:{AUTHENTICATED}", f"Group:{UNAUTHENTICATED}"),
    "system:monitoring": ("Group:system:monitoring",),
    "system:kube-scheduler": ("User:system:kube-scheduler",),
    "system:kube-controller-manager": ("User:system:kube-controller-manager",),
    "system:service-account-issuer-discovery": ("Group:system:serviceaccounts",),
    **{user: (f"User:{user}",) for user in COMPONENT_USERS.values()},
}


def objects() -> Iterator[tuple[str, Json]]:
    """Yield plural and object of every role and binding that a cluster starts with."""
    for name, rules in _ROLES.items():
        yield "clusterroles", _cluster_role(name, rules)
    for name, (rules, into) in _AGGREGATED.items():
        yield "clusterroles", _cluster_role(f"system:aggregate-to-{name}", rules, into=name)
        yield "clusterroles", _aggregated_role(name, into)
    for role, subjects in _BINDINGS.items():
        yield "clusterrolebindings", _cluster_role_binding(role, subjects)


def lacking_rules(present: Json, wanted: Json) -> Rules:
    """Return the rules that a role of an older release lacks, unless it opted out of updates."""
    annotations = (present.get("metadata") or {}).get("annotations") or {}
    if annotations.get(_AUTOUPDATE) != "true":
        return []
    held = map(Rule.from_object, present.get("rules") or ())
    needed = map(Rule.from_object, wanted["rules"])
    return [rule.to_object() for rule in missing(held, needed)]


def _metadata(name: str, into: str) -> Json:
    labels = {**_LABELS, **({f"{_AGGREGATE}{into}": "true"} if into else {})}
    return {"name": name, "labels": labels, "annotations": {_AUTOUPDATE: "true"}}


def _cluster_role(name: str, rules: Rules, *, into: str = "") -> Json:
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "ClusterRole",
        "metadata": _metadata(name, into),
        "rules": rules,
    }


def _aggregated_role(name: str, into: str) -> Json:
    selector = {"matchLabels": {f"{_AGGREGATE}{name}": "true"}}
    return {
        **_cluster_role(name, [], into=into),
        "aggregationRule": {"clusterRoleSelectors": [selector]},
    }


def _cluster_role_binding(role: str, subjects: tuple[str, ...]) -> Json:
    listed = []
    for subject in subjects:
        kind, _, name = subject.partition(":")
        listed.append({"apiGroup": GROUP, "kind": kind, "name": name})
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": _metadata(role, ""),
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": role},
        "subjects": listed,
    }
