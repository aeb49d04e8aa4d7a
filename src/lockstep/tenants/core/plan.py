"""From a team and what is there to what has to change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from lockstep.api import quantity
from lockstep.api.core import NAMESPACES
from lockstep.api.names import TEAM_LABEL
from lockstep.api.queue import QUEUES
from lockstep.api.resource import Resource
from lockstep.api.team import Member, Team
from lockstep.api.wire import Json, to_builtins
from lockstep.runtime.actions import Action, Apply, Delete
from lockstep.tenants.core.objects import OWN_LABELS, Wanted, namespaces, wanted

Key = tuple[str, str, str]
"""Plural, namespace and name of an object."""


FIELD_MANAGER: Final = "lockstep-tenants"


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do, and what stands in the way."""

    actions: tuple[Action, ...]
    problems: tuple[str, ...]
    """Sentences for the team's condition; empty when all of it can be there."""


def plan(
    team: Team, seen: Mapping[Key, tuple[Resource[Any], Any]], above: Sequence[str] = ()
) -> Plan:
    """Return what brings the cluster to what *team* says.

    *seen* holds every object that bears the team's label, and, under their keys, the namespaces
    and the queue that the team names, with any labels. *above* are the queues above the team's
    that its members may read.
    """
    problems = [*_contradictions(team.spec.members), *_taken(team, seen)]
    if problems:
        return Plan((), tuple(problems))
    goal = list(wanted(team, above))
    actions: list[Action] = [_apply(team, one) for one in goal if not _is_right(team, one, seen)]
    kept = {one.key for one in goal}
    for key, (resource, obj) in sorted(seen.items(), key=lambda entry: entry[0]):
        if key not in kept and _ours(team, obj) and resource is not NAMESPACES:
            actions.append(Delete.of(resource, obj.metadata))
    return Plan(tuple(actions), ())


def _ours(team: Team, obj: Any) -> bool:
    return bool(obj.metadata.labels.get(TEAM_LABEL) == team.metadata.name)


def _contradictions(members: Iterable[Member]) -> Iterable[str]:
    roles: dict[tuple[str, str], str] = {}
    for index, member in enumerate(members):
        known = roles.setdefault((member.kind, member.name), member.role)
        if known != member.role:
            yield (
                f"spec.members[{index}]: {member.kind} {member.name} is {known} and {member.role}; "
                "name each member once"
            )
        if member.kind == "ServiceAccount" and member.name.count("/") != 1:
            yield (
                f"spec.members[{index}].name: {member.name!r} is no NAMESPACE/NAME of a "
                "service account"
            )


def _taken(team: Team, seen: Mapping[Key, tuple[Resource[Any], Any]]) -> Iterable[str]:
    name = team.metadata.name
    watched: list[tuple[Resource[Any], str]] = [(NAMESPACES, space) for space in namespaces(team)]
    if team.spec.queue is not None:
        watched.append((QUEUES, name))
    for resource, one in watched:
        found = seen.get((resource.plural, "", one))
        if found is None or _ours(team, found[1]):
            continue
        owner = found[1].metadata.labels.get(TEAM_LABEL)
        held = f"belongs to team {owner}" if owner else "is there already and belongs to no team"
        yield (
            f"{resource.kind.lower()} {one} {held}; to hand it over: "
            f"kubectl label --overwrite {resource.plural} {one} {TEAM_LABEL}={name}"
        )


def _is_right(team: Team, one: Wanted, seen: Mapping[Key, tuple[Resource[Any], Any]]) -> bool:
    found = seen.get(one.key)
    if found is None or not _ours(team, found[1]):
        return False
    owners = {owner.uid for owner in found[1].metadata.owner_references}
    if one.resource is not NAMESPACES and team.metadata.uid not in owners:
        # A team of the same name made it, and it would go with that one.
        return False
    has = found[1].metadata.labels
    told = {*one.labels, *(OWN_LABELS if one.resource is NAMESPACES else ())}
    if any(has.get(key) != one.labels.get(key) for key in told):
        return False
    there = to_builtins(found[1])
    return all(_same(there.get(key), value) for key, value in one.body.items())


def _same(there: Any, asked: Any) -> bool:
    """Return whether two trees say the same; servers write amounts in a form of their own."""
    if isinstance(asked, dict):
        return (
            isinstance(there, dict)
            and there.keys() == asked.keys()
            and all(_same(there[key], value) for key, value in asked.items())
        )
    if isinstance(asked, list):
        return (
            isinstance(there, list)
            and len(there) == len(asked)
            and all(_same(a, b) for a, b in zip(there, asked, strict=True))
        )
    return there == asked or _amount(there) == _amount(asked) is not None


def _amount(value: Any) -> float | None:
    try:
        return float(quantity.parse(value))
    except (TypeError, ValueError):
        return None


def _apply(team: Team, one: Wanted) -> Apply:
    meta: Json = {"name": one.name, "labels": {TEAM_LABEL: team.metadata.name, **one.labels}}
    if one.namespace:
        meta["namespace"] = one.namespace
    if one.resource is not NAMESPACES or team.spec.deletion == "Delete":
        owner = {"apiVersion": team.api_version, "kind": team.kind, "name": team.metadata.name}
        meta["ownerReferences"] = [{**owner, "uid": team.metadata.uid}]
    body = {"metadata": meta, **one.body}
    return Apply(one.resource, one.name, body, FIELD_MANAGER, one.namespace)
