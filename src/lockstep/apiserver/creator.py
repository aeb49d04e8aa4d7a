"""Who created a job: written by the server, so that no user's usage is told as another's."""

from __future__ import annotations

from typing import Final

from lockstep.api import creator_policy
from lockstep.api.names import GANG_LABEL, GROUP, SCHEDULER_NAME, SYSTEM_NAMESPACE
from lockstep.api.wire import Json
from lockstep.apiserver.auth.bootstrap import COMPONENT_USERS
from lockstep.apiserver.auth.identity import User
from lockstep.apiserver.catalog import Served

_PARTS: Final = frozenset(COMPONENT_USERS.values())
_OWN: Final = f"system:serviceaccount:{SYSTEM_NAMESPACE}:"
"""The users of Lockstep's own parts, here and on clusters: they hand on whose job it was."""


def sign(served: Served, user: User, obj: Json) -> None:
    """Write into a new object that *user* created it; what it states itself is replaced."""
    # Pods that parts make come from templates of users, so what they say counts for nothing.
    if waits_alone(served, obj) or (_signed(served, obj) and not is_part(user)):
        _put(obj, creator_policy.signature(user.name, user.groups))


def is_part(user: User) -> bool:
    """Tell whether a user is one of Lockstep's own parts."""
    return user.name in _PARTS or user.name.startswith(_OWN)


def waits_alone(served: Served, obj: Json) -> bool:
    """Tell whether an object is a pod that the scheduler places without a gang."""
    spec, labels = obj.get("spec"), obj["metadata"].get("labels")
    return (
        served.storage == "pods"
        and isinstance(spec, dict)
        and spec.get("schedulerName") == SCHEDULER_NAME
        and not (isinstance(labels, dict) and GANG_LABEL in labels)
    )


def keep(served: Served, new: Json, old: Json) -> None:
    """Let *new* say of its creator what *old* says: no change passes a job to another user."""
    if not _signed(served, old):
        return
    before = creator_policy.handed_on(old["metadata"].get("annotations") or {})
    if creator_policy.handed_on(new["metadata"].get("annotations") or {}) != before:
        _put(new, before)


def _put(obj: Json, told: dict[str, str]) -> None:
    meta = obj.setdefault("metadata", {})
    given = meta.get("annotations") or {}
    if isinstance(given, dict):  # other values are refused later, by their field
        meta["annotations"] = creator_policy.unsigned(given) | told


def _signed(served: Served, obj: Json) -> bool:
    kind = served.kind
    return waits_alone(served, obj) or (kind.group, kind.plural in creator_policy.KINDS) == (
        GROUP,
        True,
    )
