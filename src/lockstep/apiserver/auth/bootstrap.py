"""The roles and bindings that every cluster starts with.

Those of Kubernetes are as kube-apiserver makes them (``tools/schemas/roles.py`` records them), so
that its own programs find the rights that they expect. What Lockstep's parts may do stands in
:mod:`lockstep.api.permissions`, for clusters as well.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping
from importlib import resources
from typing import Final

import msgspec

from lockstep.api.permissions.parts import PERMISSIONS
from lockstep.api.permissions.people import PEOPLE
from lockstep.api.wire import Json
from lockstep.apiserver.auth.rbac import GROUP
from lockstep.apiserver.auth.rules import Rule, missing

Rules = list[Json]

COMPONENT_USERS: Final[Mapping[str, str]] = {
    "scheduler": "lockstep:scheduler",
    "controllers": "lockstep:controllers",
    "process-node": "lockstep:process-node",
    "agent": "lockstep:agent",
    "data-cache": "lockstep:data-cache",
    "router": "lockstep:router",
    "gateway": "lockstep:gateway",
    "console": "lockstep:console",
    "simulate-nodes": "lockstep:simulated-nodes",
}
"""Name of a part's kubeconfig, and the user that it acts as."""

_LABELS: Final = {"kubernetes.io/bootstrapping": "rbac-defaults"}
_AUTOUPDATE: Final = "rbac.authorization.kubernetes.io/autoupdate"
_AGGREGATE: Final = "rbac.authorization.k8s.io/aggregate-to-"


def objects() -> Iterator[tuple[str, Json]]:
    """Yield plural and object of every role and binding that a cluster starts with."""
    packed = resources.files("lockstep.apiserver").joinpath("data", "roles.json.gz").read_bytes()
    recorded = msgspec.json.decode(gzip.decompress(packed), type=dict[str, list[Json]])
    for plural, listed in recorded.items():
        for obj in listed:
            yield plural, obj
    for name, rules in PEOPLE.items():
        yield "clusterroles", _cluster_role(f"lockstep:{name}", list(rules), into=name)
    for part, may in PERMISSIONS.items():
        user = COMPONENT_USERS.get(part)
        if user is None:
            continue  # it runs on clusters alone
        yield "clusterroles", _cluster_role(user, may.on_embedded())
        yield "clusterrolebindings", _binding(user)


def lacking_rules(present: Json, wanted: Json) -> Rules:
    """Return the rules that a role of an older release lacks, unless it opted out of updates."""
    annotations = (present.get("metadata") or {}).get("annotations") or {}
    if annotations.get(_AUTOUPDATE) != "true":
        return []
    held = map(Rule.from_object, present.get("rules") or ())
    needed = map(Rule.from_object, wanted["rules"])
    return [rule.to_object() for rule in missing(held, needed)]


def _metadata(name: str, into: str = "") -> Json:
    labels = {**_LABELS, **({f"{_AGGREGATE}{into}": "true"} if into else {})}
    return {"name": name, "labels": labels, "annotations": {_AUTOUPDATE: "true"}}


def _cluster_role(name: str, rules: Rules, *, into: str = "") -> Json:
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "ClusterRole",
        "metadata": _metadata(name, into),
        "rules": rules,
    }


def _binding(user: str) -> Json:
    """Return what binds a part's user to the role of the same name."""
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": _metadata(user),
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": user},
        "subjects": [{"apiGroup": GROUP, "kind": "User", "name": user}],
    }
