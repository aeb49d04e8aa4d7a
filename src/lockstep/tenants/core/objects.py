"""The objects that a team consists of, as it wants them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from lockstep.api.core import NAMESPACES, AnyObject
from lockstep.api.meta import ObjectMeta
from lockstep.api.names import GPU_COMPUTE, GPU_MEMORY, TEAM_LABEL
from lockstep.api.queue import QUEUES
from lockstep.api.resource import Resource
from lockstep.api.team import Member, Team
from lockstep.api.wire import Wire, to_builtins
from lockstep.compat.vendors import VENDORS

Json = dict[str, Any]

DEVICES: Final = tuple(dict.fromkeys((*(one.resource for one in VENDORS), GPU_COMPUTE, GPU_MEMORY)))
"""Device resources that a team may be kept from."""
CLUSTER_ROLES: Final = {"Admin": "admin", "Edit": "edit", "View": "view"}
"""The cluster role that each role of a team binds. The controller may bind no others."""


class RoleBinding(Wire, frozen=True):
    """Who has a role in a namespace."""

    metadata: ObjectMeta
    role_ref: dict[str, Any] = {}
    subjects: list[dict[str, Any]] = []


ROLE_BINDINGS: Final = Resource(
    "rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding", True, RoleBinding
)
RESOURCE_QUOTAS: Final = Resource("", "v1", "resourcequotas", "ResourceQuota", True, AnyObject)
LIMIT_RANGES: Final = Resource("", "v1", "limitranges", "LimitRange", True, AnyObject)
NETWORK_POLICIES: Final = Resource(
    "networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy", True, AnyObject
)
OWNED: Final[tuple[Resource[Any], ...]] = (
    NAMESPACES,
    QUEUES,
    ROLE_BINDINGS,
    RESOURCE_QUOTAS,
    LIMIT_RANGES,
    NETWORK_POLICIES,
)
"""Every kind that a team's objects may have, in the order in which they are made."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """One object that the team should have: its kind, place, and the fields that count."""

    resource: Resource[Any]
    name: str
    namespace: str
    body: Json
    """The fields beside ``metadata``; an object that has them as they stand here is right."""

    @property
    def key(self) -> tuple[str, str, str]:
        """Return plural, namespace and name."""
        return (self.resource.plural, self.namespace, self.name)


def namespaces(team: Team) -> list[str]:
    """Return the names of the team's namespaces."""
    return list(dict.fromkeys(team.spec.namespaces)) or [team.metadata.name]


def wanted(team: Team) -> Iterator[Wanted]:
    """Yield every object of *team*, namespaces before what is in them."""
    name, spec = team.metadata.name, team.spec
    for space in namespaces(team):
        yield Wanted(NAMESPACES, space, "", {})
    if spec.queue is not None:
        yield Wanted(QUEUES, name, "", {"spec": to_builtins(spec.queue)})
    for space in namespaces(team):
        yield from _rights(team, space)
        if spec.quota:
            hard = {resource: str(amount) for resource, amount in spec.quota.items()}
            yield Wanted(RESOURCE_QUOTAS, f"team-{name}", space, {"spec": {"hard": hard}})
        if spec.devices is not None:
            none = {f"requests.{one}": "0" for one in DEVICES if one not in spec.devices}
            yield Wanted(RESOURCE_QUOTAS, f"team-{name}-devices", space, {"spec": {"hard": none}})
        if spec.container_defaults:
            yield Wanted(LIMIT_RANGES, f"team-{name}", space, {"spec": _limits(team)})
        if spec.network == "Isolated":
            yield Wanted(NETWORK_POLICIES, f"team-{name}", space, {"spec": _isolated(team)})


def _rights(team: Team, space: str) -> Iterator[Wanted]:
    for role, cluster_role in CLUSTER_ROLES.items():
        members = [member for member in team.spec.members if member.role == role]
        if members:
            body: Json = {
                "roleRef": {
                    "apiGroup": "rbac.authorization.k8s.io",
                    "kind": "ClusterRole",
                    "name": cluster_role,
                },
                "subjects": [_subject(member) for member in members],
            }
            yield Wanted(ROLE_BINDINGS, f"team-{team.metadata.name}-{cluster_role}", space, body)


def _subject(member: Member) -> Json:
    if member.kind == "ServiceAccount":
        space, _, name = member.name.partition("/")
        return {"kind": "ServiceAccount", "name": name, "namespace": space}
    return {"apiGroup": "rbac.authorization.k8s.io", "kind": member.kind, "name": member.name}


def _limits(team: Team) -> Json:
    amounts = {name: str(amount) for name, amount in team.spec.container_defaults.items()}
    return {"limits": [{"type": "Container", "default": amounts, "defaultRequest": amounts}]}


def _isolated(team: Team) -> Json:
    own = {"namespaceSelector": {"matchLabels": {TEAM_LABEL: team.metadata.name}}}
    return {"podSelector": {}, "policyTypes": ["Ingress"], "ingress": [{"from": [own]}]}
