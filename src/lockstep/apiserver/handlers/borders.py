"""Writes that would take away what isolates a team."""

from __future__ import annotations

from lockstep.api import team_borders
from lockstep.api.names import GROUP
from lockstep.api.wire import Json
from lockstep.apiserver import status
from lockstep.apiserver.auth.rules import Attributes
from lockstep.apiserver.creator import is_part
from lockstep.apiserver.handlers.call import Call
from lockstep.apiserver.objects import Objects
from lockstep.apiserver.store import Key


def require_border(objects: Objects, call: Call, new: Json | None, old: Json | None) -> None:
    """Let a write pass that leaves the borders of teams, or whose user may update the team.

    Raises:
        StatusError: when it would move one.
    """
    kind = call.served.kind
    if team_borders.KINDS.get(kind.plural) != kind.group or is_part(call.user):
        return
    namespace = call.route.namespace or ((old or {}).get("metadata") or {}).get("namespace") or ""
    space = objects.store.newest(Key("namespaces", "", namespace))
    labels = (space.object()["metadata"].get("labels") or {}) if space is not None else {}
    team = team_borders.team_of(kind.plural, new, old, labels)
    wish = Attributes("update", GROUP, "v1alpha1", "teams", name=team)
    if team and not call.rbac.allows(call.user, wish):
        about = ((new or old or {}).get("metadata") or {}).get("name") or ""
        why = team_borders.refusal(call.user.name, team)
        raise status.forbidden(kind.group, kind.plural, about, why)
