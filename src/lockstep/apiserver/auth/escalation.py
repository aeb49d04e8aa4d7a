"""Users can grant only the permissions that they hold themselves."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from lockstep.api.wire import Json
from lockstep.apiserver.auth.identity import MASTERS, User
from lockstep.apiserver.auth.rbac import GROUP, Rbac
from lockstep.apiserver.auth.rules import Attributes, Rule, missing
from lockstep.apiserver.status import StatusError, forbidden

ROLES: Final = frozenset({"roles", "clusterroles"})
BINDINGS: Final = frozenset({"rolebindings", "clusterrolebindings"})
_FULL: Final = (Rule(*[frozenset({"*"})] * 3), Rule(frozenset({"*"}), urls=frozenset({"*"})))


@dataclass(frozen=True, slots=True)
class Target:
    """What a request writes, as its path says: what the body says is not to be trusted here."""

    plural: str
    namespace: str = ""
    name: str = ""
    """Empty for a creation."""


def check_grant(rbac: Rbac, user: User, target: Target, new: Json, old: Json | None = None) -> None:
    """Let a role or a binding be written if it grants nothing that the user lacks.

    The verbs ``escalate`` on a role and ``bind`` on the role of a binding permit more.

    Raises:
        StatusError: The user would grant more than they have (403).
    """
    if MASTERS in user.groups or (old is not None and _grants(new) == _grants(old)):
        return
    if target.plural in ROLES:
        wish = Attributes(
            "escalate",
            GROUP,
            resource=target.plural,
            namespace=target.namespace,
            name=target.name,
        )
        if not rbac.allows(user, wish):
            _check_role(rbac, user, target, new, old or {})
    elif target.plural in BINDINGS:
        _check_binding(rbac, user, target, new)


def _grants(obj: Json) -> tuple[Any, ...]:
    return tuple(obj.get(key) for key in ("rules", "aggregationRule", "roleRef", "subjects"))


def _check_role(rbac: Rbac, user: User, target: Target, new: Json, old: Json) -> None:
    held = rbac.rules_of(user, target.namespace)
    _confirm(user, target, new, held, map(Rule.from_object, new.get("rules") or ()))
    if (_aggregates(new) or _aggregates(old)) and missing(held, _FULL):
        raise _refusal(target, new, "must have cluster-admin privileges to use the aggregationRule")


def _aggregates(role: Json) -> bool:
    return bool((role.get("aggregationRule") or {}).get("clusterRoleSelectors"))


def _check_binding(rbac: Rbac, user: User, target: Target, new: Json) -> None:
    reference = new.get("roleRef") or {}
    kind, role = reference.get("kind", ""), reference.get("name", "")
    resource = "clusterroles" if kind == "ClusterRole" else "roles"
    wish = Attributes("bind", GROUP, resource=resource, namespace=target.namespace, name=role)
    if rbac.allows(user, wish):
        return
    if not rbac.has_role(kind, role, target.namespace):
        raise StatusError(
            404,
            "NotFound",
            f'{resource[:-1]}.{GROUP} "{role}" not found',
            {"group": GROUP, "kind": resource[:-1], "name": role},
        )
    held = rbac.rules_of(user, target.namespace)
    _confirm(user, target, new, held, rbac.role_rules(kind, role, target.namespace))


def _confirm(
    user: User, target: Target, new: Json, held: Iterable[Rule], wanted: Iterable[Rule]
) -> None:
    lacking = missing(held, wanted)
    if lacking:
        groups = " ".join(json.dumps(group) for group in user.groups)
        described = "\n".join(sorted(map(str, lacking)))
        raise _refusal(
            target,
            new,
            f"user {json.dumps(user.name)} (groups=[{groups}]) is attempting to grant RBAC "
            f"permissions not currently held:\n{described}",
        )


def _refusal(target: Target, new: Json, why: str) -> StatusError:
    name = target.name or (new.get("metadata") or {}).get("name", "")
    return forbidden(GROUP, target.plural, name, why)
