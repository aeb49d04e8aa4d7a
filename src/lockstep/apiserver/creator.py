"""Who created a job: written by the server, so that no user's usage is told as another's."""

from __future__ import annotations

from typing import Any, Final

from lockstep.api.names import CREATOR_ANNOTATION, GROUP, SYSTEM_NAMESPACE
from lockstep.apiserver.auth.bootstrap import COMPONENT_USERS
from lockstep.apiserver.auth.identity import User
from lockstep.apiserver.catalog import Served

Json = dict[str, Any]

_KINDS: Final = frozenset({"trainingjobs", "gangs"})
_PARTS: Final = frozenset(COMPONENT_USERS.values())
_OWN: Final = f"system:serviceaccount:{SYSTEM_NAMESPACE}:"
"""The users of Lockstep's own parts, here and on clusters: they hand on whose job it was."""


def sign(served: Served, user: User, obj: Json) -> None:
    """Write into a new job or gang that *user* created it; what it states itself is replaced."""
    if _signed(served) and not is_part(user):
        meta = obj.setdefault("metadata", {})
        meta["annotations"] = {**(meta.get("annotations") or {}), CREATOR_ANNOTATION: user.name}


def is_part(user: User) -> bool:
    """Tell whether a user is one of Lockstep's own parts."""
    return user.name in _PARTS or user.name.startswith(_OWN)


def keep(served: Served, new: Json, old: Json) -> None:
    """Let *new* say of its creator what *old* says: no change passes a job to another user."""
    if not _signed(served):
        return
    before = (old["metadata"].get("annotations") or {}).get(CREATOR_ANNOTATION)
    now = new["metadata"].get("annotations") or {}
    if now.get(CREATOR_ANNOTATION) == before:
        return
    kept = {key: text for key, text in now.items() if key != CREATOR_ANNOTATION}
    if before is not None:
        kept[CREATOR_ANNOTATION] = before
    new["metadata"]["annotations"] = kept


def _signed(served: Served) -> bool:
    return served.kind.group == GROUP and served.kind.plural in _KINDS
