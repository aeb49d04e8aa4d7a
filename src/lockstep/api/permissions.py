"""What each part of Lockstep may do, in one table.

The embedded API server's roles and the Helm chart's are both made from it. A test runs the parts
with these rights alone and holds the requests that they made against it, so that nothing is missing
here and nothing is granted for nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from lockstep.api.names import CONTROLLERS_LEASE, GROUP, SCHEDULER_LEASE

Json = dict[str, Any]
Rules = tuple[Json, ...]

OWN: Final = "own"


def rule(groups: str | tuple[str, ...], resources: str, *verbs: str, names: str = "") -> Json:
    """Return an RBAC rule; resources and names of objects are separated by spaces."""
    listed = [groups] if isinstance(groups, str) else list(groups)
    found: Json = {"apiGroups": listed, "resources": resources.split(), "verbs": list(verbs)}
    if names:
        found["resourceNames"] = names.split()
    return found


@dataclass(frozen=True, slots=True)
class Permissions:
    """What one part may do."""

    cluster: Rules
    """In every namespace, and about what has none."""
    namespaced: Mapping[str, Rules] = field(default_factory=dict)
    """By namespace; ``OWN`` is the one that it runs in on a cluster."""
    embedded: Rules = ()
    """Beyond that on an embedded server, where nobody installs anything beforehand."""
    serves: bool = False
    """Whether it serves metrics."""

    def on_embedded(self) -> list[Json]:
        """Return the rules on an embedded server, which gives each part one cluster role."""
        scoped = (one for rules in self.namespaced.values() for one in rules)
        return [*self.cluster, *scoped, *self.embedded, *(METRICS if self.serves else ())]


def _lead(name: str) -> dict[str, Rules]:
    # RBAC cannot tell by name what is about to be created.
    rules = (
        rule("coordination.k8s.io", "leases", "create"),
        rule("coordination.k8s.io", "leases", "get", "patch", names=name),
    )
    return {OWN: rules}


_FOLLOW: Final = ("list", "watch")
_RECORD_EVENTS: Final = rule("", "events", "create", "patch")
_OWN_KINDS: Final = rule(
    "apiextensions.k8s.io",
    "customresourcedefinitions",
    "get",
    names=" ".join(
        f"{plural}.{GROUP}"
        for plural in ("gangs", "nodepolicies", "queues", "topologies", "trainingjobs")
    ),
)
"""To tell that a definition is older than the program."""
_INSTALL: Final = (
    rule("apiextensions.k8s.io", "customresourcedefinitions", "create", "patch"),
    rule("", "namespaces", "create"),
)
_SIMULATED: Final = (
    rule("", "nodes", "create", "get", "patch", *_FOLLOW),
    rule("", "nodes/status pods/status", "patch"),
    rule("", "pods", "delete", *_FOLLOW),
    rule("", "namespaces", "get", names="kube-node-lease"),
)
_NODE_LEASES: Final = {
    "kube-node-lease": (rule("coordination.k8s.io", "leases", "create", "patch"),),
}

METRICS: Final[Rules] = (
    rule("authentication.k8s.io", "tokenreviews", "create"),
    rule("authorization.k8s.io", "subjectaccessreviews", "create"),
)
"""What it takes to serve metrics: asking who scrapes, and whether they may."""

PERMISSIONS: Final[Mapping[str, Permissions]] = {
    "scheduler": Permissions(
        cluster=(
            rule("", "pods", "delete", "get", *_FOLLOW),
            rule("", "pods/binding", "create"),
            rule("", "pods/status", "patch"),
            rule("", "nodes", *_FOLLOW),
            rule(GROUP, "gangs queues topologies nodepolicies", *_FOLLOW),
            rule(GROUP, "gangs/status queues/status", "patch"),
            rule("scheduling.k8s.io", "priorityclasses", *_FOLLOW),
            rule("policy", "poddisruptionbudgets", *_FOLLOW),
            _OWN_KINDS,
            rule("topology.volcano.sh", "hypernodes", *_FOLLOW),
            _RECORD_EVENTS,
        ),
        namespaced=_lead(SCHEDULER_LEASE),
        embedded=_INSTALL,
        serves=True,
    ),
    "controllers": Permissions(
        cluster=(
            rule(GROUP, "trainingjobs", "delete", *_FOLLOW),
            rule(GROUP, "trainingjobs/status", "patch"),
            rule(GROUP, "trainingjobs/finalizers", "update"),
            rule(GROUP, "gangs", "create", "delete", "get", "patch", *_FOLLOW),
            rule(GROUP, "gangs/status", "patch"),
            rule("", "pods", "create", "delete", "get", *_FOLLOW),
            rule("", "configmaps", "create", "get", "patch", *_FOLLOW),
            rule("", "secrets", "create", "get", "patch"),
            rule("", "services", "create", "get", *_FOLLOW),
            rule("", "events", "create", "list", "patch"),
            _OWN_KINDS,
        ),
        namespaced=_lead(CONTROLLERS_LEASE),
        embedded=_INSTALL,
        serves=True,
    ),
    "simulate-nodes": Permissions(
        cluster=_SIMULATED,
        namespaced=_NODE_LEASES,
        embedded=(rule("", "namespaces", "create"),),
    ),
    "process-node": Permissions(
        cluster=(
            rule("", "nodes", "create", "delete", "get", "patch", *_FOLLOW),
            rule("", "nodes/status pods/status", "patch"),
            rule("", "pods", "delete", "get", "patch", *_FOLLOW),
            rule("", "configmaps secrets services endpoints", "get", *_FOLLOW),
            rule("", "persistentvolumeclaims persistentvolumes serviceaccounts namespaces", "get"),
            rule("", "serviceaccounts/token", "create"),
            _RECORD_EVENTS,
            *METRICS,
        ),
        namespaced={
            "kube-node-lease": (
                rule("coordination.k8s.io", "leases", "create", "delete", "get", "patch"),
            )
        },
        embedded=(rule("", "namespaces", "create"),),
    ),
}
"""By the name of the command that starts the part."""

_CHANGE: Final = ("create", "delete", "deletecollection", "patch", "update")
_READ: Final = ("get", "list", "watch")

PEOPLE: Final[Mapping[str, Rules]] = {
    "view": (
        rule(GROUP, "trainingjobs trainingjobs/status gangs gangs/status", *_READ),
        rule(GROUP, "queues queues/status topologies nodepolicies", *_READ),
    ),
    "edit": (rule(GROUP, "trainingjobs gangs", *_CHANGE),),
}
"""What the roles that every cluster has for people gain; ``admin`` has what ``edit`` has."""
