"""What each part of Lockstep may do, in one table.

The embedded API server's roles and the Helm chart's are both made from it. A test runs the parts
with these rights alone and holds the requests that they made against it, so that nothing is missing
here and nothing is granted for nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from lockstep.api.names import GROUP

Json = dict[str, Any]
Rules = tuple[Json, ...]


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
    """In every namespace."""
    own: Rules = ()
    """In the namespace that it runs in, as far as it runs on a cluster."""
    embedded: Rules = ()
    """Beyond that on an embedded server, where nobody installs anything beforehand."""


def _lead(name: str) -> Rules:
    # RBAC cannot tell by name what is about to be created.
    return (
        rule("coordination.k8s.io", "leases", "create"),
        rule("coordination.k8s.io", "leases", "get", "patch", names=name),
    )


_FOLLOW: Final = ("list", "watch")
_RECORD_EVENTS: Final = rule("", "events", "create", "patch")
_INSTALL: Final = (
    rule("apiextensions.k8s.io", "customresourcedefinitions", "create"),
    rule("", "namespaces", "create"),
)
_METRICS: Final = (
    rule("authentication.k8s.io", "tokenreviews", "create"),
    rule("authorization.k8s.io", "subjectaccessreviews", "create"),
)
"""To ask who scrapes, and whether they may."""

_NODE: Final = (
    rule("", "nodes", "create", "delete", "get", "list", "patch", "watch"),
    rule("", "nodes/status pods/status", "patch"),
    rule("", "pods", "delete", "get", "list", "patch", "watch"),
    rule("", "namespaces", "get"),
    rule("coordination.k8s.io", "leases", "create", "delete", "get", "patch"),
    _RECORD_EVENTS,
)

PERMISSIONS: Final[Mapping[str, Permissions]] = {
    "scheduler": Permissions(
        cluster=(
            rule("", "pods", "delete", "get", *_FOLLOW),
            rule("", "pods/binding", "create"),
            rule("", "pods/status", "patch"),
            rule("", "nodes", *_FOLLOW),
            rule(GROUP, "gangs queues topologies", *_FOLLOW),
            rule(GROUP, "gangs/status queues/status", "patch"),
            rule("scheduling.k8s.io", "priorityclasses", *_FOLLOW),
            _RECORD_EVENTS,
        ),
        own=_lead("lockstep-scheduler"),
        embedded=_INSTALL,
    ),
    "controllers": Permissions(
        cluster=(
            rule(GROUP, "trainingjobs", "delete", *_FOLLOW),
            rule(GROUP, "trainingjobs/status", "patch"),
            rule(GROUP, "trainingjobs/finalizers", "update"),
            rule(GROUP, "gangs", "create", "delete", "get", "patch", *_FOLLOW),
            rule("", "pods", "create", "delete", "get", *_FOLLOW),
            rule("", "configmaps secrets", "create", "get", "patch", *_FOLLOW),
            rule("", "services", "create", "get", *_FOLLOW),
            rule("", "events", "create", "list", "patch"),
        ),
        own=_lead("lockstep-controllers"),
        embedded=_INSTALL,
    ),
    "simulate-nodes": Permissions(cluster=_NODE, embedded=(rule("", "namespaces", "create"),)),
    "process-node": Permissions(
        cluster=(
            *_NODE,
            rule("", "configmaps secrets services endpoints", "get", *_FOLLOW),
            rule("", "persistentvolumeclaims persistentvolumes serviceaccounts", "get"),
            rule("", "serviceaccounts/token", "create"),
            rule("authentication.k8s.io", "tokenreviews", "create"),
            rule("authorization.k8s.io", "subjectaccessreviews", "create"),
        ),
        embedded=(rule("", "namespaces", "create"),),
    ),
}
"""By the name of the command that starts the part."""
