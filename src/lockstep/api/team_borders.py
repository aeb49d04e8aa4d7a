"""The objects that isolate a team: its members cannot take them away. The rule, and the policy.

A member with the cluster role ``edit`` may delete network policies of the namespace, and one with
``admin`` role bindings. Those that a Team made are changed by users who may update the Team alone,
and no other policy opens the pods of an isolated team. The embedded API server follows the rule
itself; clusters do so by a ValidatingAdmissionPolicy (Kubernetes 1.30 and newer).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lockstep.api.admission_policy import CHANGES, by_others, has, rule, validating
from lockstep.api.names import GROUP, ISOLATED_LABEL, TEAM_LABEL
from lockstep.api.wire import Json

NAME: Final = "lockstep-team-borders"
KINDS: Final[Mapping[str, str]] = {
    "networkpolicies": "networking.k8s.io",
    "resourcequotas": "",
    "limitranges": "",
    "rolebindings": "rbac.authorization.k8s.io",
}
"""Kinds of the objects that isolate a team, and their groups."""
_KUBERNETES: Final = "system:serviceaccount:kube-system:"
"""Kubernetes' own controllers, which end what is in a namespace that goes."""


def team_of(plural: str, new: Json | None, old: Json | None, space: Mapping[str, str]) -> str:
    """Return the team whose border a write would move; empty where it moves none.

    *space* has the labels of the namespace; *new* is None where the object is deleted.
    """
    if old is not None and (team := _labels(old).get(TEAM_LABEL)):
        return team
    if plural != "networkpolicies" or new is None or ISOLATED_LABEL not in space:
        return ""
    lets_nothing_in = (new.get("spec") or {}).get("policyTypes") == ["Egress"]
    return "" if lets_nothing_in else space.get(TEAM_LABEL, "")


def refusal(user: str, team: str) -> str:
    """Return why a write is refused."""
    return (
        f"user {user} may not change what isolates team {team}; "
        f"what would help: the right to update teams.{GROUP} {team}, or a change of the Team"
    )


def _labels(obj: Json) -> Mapping[str, str]:
    return obj["metadata"].get("labels") or {}


def objects() -> list[Json]:
    """Return the policy and its binding."""
    return validating(
        NAME,
        [rule(group, kind, operations=(*CHANGES, "DELETE")) for kind, group in KINDS.items()],
        {"team": _team()},
        f"variables.team == '' || {_may()}",
        _message(),
        namespaces={"matchExpressions": [{"key": TEAM_LABEL, "operator": "Exists"}]},
        conditions={"of-others": by_others(_KUBERNETES)},
    )


def _may() -> str:
    """Return the expression of who may: who updates the Team, and the controller of teams."""
    team = f"authorizer.group('{GROUP}').resource('teams')"
    return (
        f"{team}.name(variables.team).check('update').allowed() || "
        f"{team}.subresource('status').name(variables.team).check('patch').allowed()"
    )


def _team() -> str:
    """Return the expression that says what :func:`team_of` does."""
    labelled = f"request.operation != 'CREATE' && {has('oldObject', 'labels', TEAM_LABEL)}"
    opens = (
        "request.operation != 'DELETE' && request.resource.resource == 'networkpolicies' && "
        f"'{ISOLATED_LABEL}' in namespaceObject.metadata.labels && "
        "!(has(object.spec) && has(object.spec.policyTypes) && "
        "object.spec.policyTypes == ['Egress'])"
    )
    return (
        f"({labelled}) ? oldObject.metadata.labels['{TEAM_LABEL}'] : "
        f"({opens}) ? namespaceObject.metadata.labels['{TEAM_LABEL}'] : ''"
    )


def _message() -> str:
    words = refusal("\x00", "\x01").replace("\x00", "' + request.userInfo.username + '")
    return "'" + words.replace("\x01", "' + variables.team + '") + "'"
