"""The tables of configuration, identity and quota."""

from __future__ import annotations

from lockstep.api.wire import Json
from lockstep.apiserver.tables.format import AGE, NAME, Cell, Column, at, listed, wide


def _entries(obj: Json) -> int:
    return len(obj.get("data") or {}) + len(obj.get("binaryData") or {})


def _used(*, limits: bool) -> Cell:
    def cell(obj: Json) -> str:
        hard, used = at(obj, "status.hard", {}), at(obj, "status.used", {})
        names = sorted(name for name in hard if name.startswith("limits.") is limits)
        return ", ".join(f"{name}: {used.get(name, '0')}/{hard[name]}" for name in names)

    return cell


def _subjects(kind: str, *fields: str) -> Cell:
    def cell(obj: Json) -> str:
        found = (one for one in obj.get("subjects") or () if one.get("kind") == kind)
        return ", ".join("/".join(one.get(field, "") for field in fields) for one in found)

    return cell


_UNRESOLVED = "If the RoleRef cannot be resolved, the Authorizer must return an error."
# The tables still describe v1beta1's field, which does not say that it is immutable.
_ROLE = {
    "RoleBinding": "RoleRef can reference a Role in the current namespace or a ClusterRole in the "
    f"global namespace. {_UNRESOLVED}",
    "ClusterRoleBinding": "RoleRef can only reference a ClusterRole in the global namespace. "
    f"{_UNRESOLVED}",
}


def _bindings(kind: str) -> tuple[Column, ...]:
    shown = kind[:1].lower() + kind[1:]
    return (
        NAME,
        Column("Role", _ROLE[kind], listed(("roleRef.kind", "roleRef.name"))),
        AGE,
        wide("Users", f"Users in the {shown}", _subjects("User", "name")),
        wide("Groups", f"Groups in the {shown}", _subjects("Group", "name")),
        wide(
            "ServiceAccounts",
            f"ServiceAccounts in the {shown}",
            _subjects("ServiceAccount", "namespace", "name"),
        ),
    )


COLUMNS = {
    "configmaps": (NAME, Column("Data", "core.v1.ConfigMap#data", _entries), AGE),
    "secrets": (
        NAME,
        Column("Type", "core.v1.Secret#type"),
        Column("Data", "core.v1.Secret#data", lambda obj: len(obj.get("data") or {})),
        AGE,
    ),
    "serviceaccounts": (NAME, AGE),
    "resourcequotas": (
        NAME,
        Column(
            "Request",
            "Request represents a minimum amount of cpu/memory that a container may consume.",
            _used(limits=False),
        ),
        Column(
            "Limit",
            "Limits control the maximum amount of cpu/memory that a container may use "
            "independent of contention on the node.",
            _used(limits=True),
        ),
        AGE,
    ),
    "rolebindings.rbac.authorization.k8s.io": _bindings("RoleBinding"),
    "clusterrolebindings.rbac.authorization.k8s.io": _bindings("ClusterRoleBinding"),
}
