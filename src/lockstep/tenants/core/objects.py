"""The objects that a team consists of, as it wants them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from lockstep.api.core import NAMESPACES, AnyObject
from lockstep.api.meta import ObjectMeta
from lockstep.api.names import (
    DEFAULT_QUEUE_LABEL,
    GPU_COMPUTE,
    GPU_MEMORY,
    GROUP,
    ISOLATED_LABEL,
    TEAM_LABEL,
)
from lockstep.api.queue import QUEUES, Queue
from lockstep.api.resource import Resource
from lockstep.api.team import Member, Team
from lockstep.api.wire import Json, Wire, to_builtins
from lockstep.compat.vendors import VENDORS

DEVICES: Final = tuple(dict.fromkeys((*(one.resource for one in VENDORS), GPU_COMPUTE, GPU_MEMORY)))
"""Device resources that a team may be kept from."""
POD_SECURITY: Final = "pod-security.kubernetes.io/enforce"
OWN_LABELS: Final = (DEFAULT_QUEUE_LABEL, ISOLATED_LABEL)
"""Labels of a team's namespaces that say nothing where the team does not."""
ROLE_NAMES: Final = {"Admin": "admin", "Edit": "edit", "View": "view"}
"""The cluster role that each role of a team binds. The controller may bind no others."""


class Role(Wire, frozen=True):
    """What a role allows."""

    metadata: ObjectMeta
    rules: list[dict[str, Any]] = []


class RoleBinding(Wire, frozen=True):
    """Who has a role in a namespace, or in all."""

    metadata: ObjectMeta
    role_ref: dict[str, Any] = {}
    subjects: list[dict[str, Any]] = []


ROLE_BINDINGS: Final = Resource(
    "rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding", True, RoleBinding
)
CLUSTER_ROLES: Final = Resource(
    "rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", False, Role
)
CLUSTER_ROLE_BINDINGS: Final = Resource(
    "rbac.authorization.k8s.io",
    "v1",
    "clusterrolebindings",
    "ClusterRoleBinding",
    False,
    RoleBinding,
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
    CLUSTER_ROLES,
    CLUSTER_ROLE_BINDINGS,
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
    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels beside that of the team."""

    @property
    def key(self) -> tuple[str, str, str]:
        """Return plural, namespace and name."""
        return (self.resource.plural, self.namespace, self.name)


def namespaces(team: Team) -> list[str]:
    """Return the names of the team's namespaces."""
    return list(dict.fromkeys(team.spec.namespaces)) or [team.metadata.name]


def wanted(team: Team, above: Sequence[str] = ()) -> Iterator[Wanted]:
    """Yield every object of *team*, namespaces before what is in them.

    *above* are the queues above the team's that its members may read.
    """
    name, spec = team.metadata.name, team.spec
    for space in namespaces(team):
        yield Wanted(NAMESPACES, space, "", {}, _space_labels(team))
    if spec.queue is not None:
        yield Wanted(QUEUES, name, "", {"spec": to_builtins(spec.queue)})
    if spec.members:
        yield from _reading(team, above)
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


def _space_labels(team: Team) -> dict[str, str]:
    """Return what the team's namespaces say of themselves to admission."""
    spec, labels = team.spec, {}
    if spec.queue is not None:
        # What names no queue waits in that of its team, and not in one without limits.
        labels[DEFAULT_QUEUE_LABEL] = team.metadata.name
    if spec.network == "Isolated":
        labels[ISOLATED_LABEL] = "true"
    if spec.pod_security is not None:
        labels[POD_SECURITY] = spec.pod_security.lower()
    return labels


def _rights(team: Team, space: str) -> Iterator[Wanted]:
    for role, cluster_role in ROLE_NAMES.items():
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


def _reading(team: Team, above: Sequence[str]) -> Iterator[Wanted]:
    """Yield what lets members read their team, its queue and its place among the queues."""
    name = f"lockstep-team-{team.metadata.name}"
    queues = [team.metadata.name, *above] if team.spec.queue is not None else []
    read = ["get", "list", "watch"]
    rules = [
        {"apiGroups": [GROUP], "resources": [plural], "resourceNames": names, "verbs": read}
        for plural, names in (("teams", [team.metadata.name]), ("queues", queues))
        if names
    ]
    yield Wanted(CLUSTER_ROLES, name, "", {"rules": rules})
    body: Json = {
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": name,
        },
        "subjects": [_subject(member) for member in team.spec.members],
    }
    yield Wanted(CLUSTER_ROLE_BINDINGS, name, "", body)


def readable_above(team: str, queues: Mapping[str, Queue]) -> list[str]:
    """Return the queues above that of *team* that its members may read, the nearest first.

    One that belongs to another team, or names who may use it, is not among them: it tells names of
    others.
    """
    found: list[str] = []
    queue = queues.get(team)
    seen = {team}
    while queue is not None and (parent := queue.spec.parent or "") and parent not in seen:
        seen.add(parent)
        queue = queues.get(parent)
        if queue is not None and _tells_of_none(queue, team):
            found.append(parent)
    return found


def _tells_of_none(queue: Queue, team: str) -> bool:
    return queue.spec.allowed is None and queue.metadata.labels.get(TEAM_LABEL, team) == team


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
