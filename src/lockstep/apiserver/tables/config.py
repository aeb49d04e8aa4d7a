"""The tables of configuration, identity and quota."""

from __future__ import annotations

from typing import Any

from lockstep.apiserver.tables.format import (
    AGE,
    NAME,
    Cells,
    Column,
    Layout,
    age,
    at,
    name_of,
    wide,
)

Json = dict[str, Any]


def _config_map(obj: Json, now: float) -> Cells:
    count = len(obj.get("data") or {}) + len(obj.get("binaryData") or {})
    return [name_of(obj), count, age(obj, now)]


def _secret(obj: Json, now: float) -> Cells:
    return [name_of(obj), obj.get("type", ""), len(obj.get("data") or {}), age(obj, now)]


def _account(obj: Json, now: float) -> Cells:
    return [name_of(obj), age(obj, now)]


def _quota(obj: Json, now: float) -> Cells:
    hard, used = at(obj, "status.hard", {}), at(obj, "status.used", {})
    shown: dict[bool, list[str]] = {True: [], False: []}
    for name in sorted(hard):
        shown[name.startswith("limits.")].append(f"{name}: {used.get(name, '0')}/{hard[name]}")
    return [name_of(obj), ", ".join(shown[False]), ", ".join(shown[True]), age(obj, now)]


def _binding(obj: Json, now: float) -> Cells:
    role, subjects = obj.get("roleRef") or {}, obj.get("subjects") or ()

    def named(kind: str) -> str:
        return ", ".join(s.get("name", "") for s in subjects if s.get("kind") == kind)

    accounts = (s for s in subjects if s.get("kind") == "ServiceAccount")
    return [
        name_of(obj),
        f"{role.get('kind', '')}/{role.get('name', '')}",
        age(obj, now),
        named("User"),
        named("Group"),
        ", ".join(f"{s.get('namespace', '')}/{s.get('name', '')}" for s in accounts),
    ]


_UNRESOLVED = "If the RoleRef cannot be resolved, the Authorizer must return an error."
# The tables still describe v1beta1's field, which does not say that it is immutable.
_ROLE = {
    "RoleBinding": "RoleRef can reference a Role in the current namespace or a ClusterRole in the "
    f"global namespace. {_UNRESOLVED}",
    "ClusterRoleBinding": "RoleRef can only reference a ClusterRole in the global namespace. "
    f"{_UNRESOLVED}",
}


def _bindings(kind: str) -> Layout:
    shown = kind[:1].lower() + kind[1:]
    columns = (
        NAME,
        Column("Role", _ROLE[kind]),
        AGE,
        *(wide(name, f"{name} in the {shown}") for name in ("Users", "Groups", "ServiceAccounts")),
    )
    return Layout(columns, _binding)


LAYOUTS = {
    "configmaps": Layout((NAME, Column("Data", "core.v1.ConfigMap#data"), AGE), _config_map),
    "secrets": Layout(
        (NAME, Column("Type", "core.v1.Secret#type"), Column("Data", "core.v1.Secret#data"), AGE),
        _secret,
    ),
    "serviceaccounts": Layout((NAME, AGE), _account),
    "resourcequotas": Layout(
        (
            NAME,
            Column(
                "Request",
                "Request represents a minimum amount of cpu/memory that a container may consume.",
            ),
            Column(
                "Limit",
                "Limits control the maximum amount of cpu/memory that a container may use "
                "independent of contention on the node.",
            ),
            AGE,
        ),
        _quota,
    ),
    "rolebindings.rbac.authorization.k8s.io": _bindings("RoleBinding"),
    "clusterrolebindings.rbac.authorization.k8s.io": _bindings("ClusterRoleBinding"),
}
