"""How the table of permissions is written: RBAC rules, and what one part may do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from lockstep.api.names import NODES_NAMESPACE, SYSTEM_NAMESPACE
from lockstep.api.wire import Json

Rules = tuple[Json, ...]

OWN: Final = "own"
FOLLOW: Final = ("list", "watch")


def rule(groups: str | tuple[str, ...], resources: str, *verbs: str, names: str = "") -> Json:
    """Return an RBAC rule; resources and names of objects are separated by spaces."""
    listed = [groups] if isinstance(groups, str) else list(groups)
    found: Json = {"apiGroups": listed, "resources": resources.split(), "verbs": list(verbs)}
    if names:
        found["resourceNames"] = names.split()
    return found


METRICS: Final[Rules] = (
    rule("authentication.k8s.io", "tokenreviews", "create"),
    rule("authorization.k8s.io", "subjectaccessreviews", "create"),
)
"""What it takes to serve metrics: asking who scrapes, and whether they may."""


@dataclass(frozen=True, slots=True)
class Permissions:
    """What one part may do."""

    cluster: Rules
    """In every namespace, and about what has none."""
    namespaced: Mapping[str, Rules] = field(default_factory=dict)
    """By namespace; ``OWN`` is the one that it runs in on a cluster."""
    embedded: Rules = ()
    """Beyond that on an embedded server, where nothing is installed beforehand."""
    serves: bool = False
    """Whether it serves metrics."""
    on_nodes: bool = False
    """Whether it runs on every node, in the namespace of parts that may change their node."""

    @property
    def home(self) -> str:
        """Return the namespace that the part runs in on a cluster."""
        return NODES_NAMESPACE if self.on_nodes else SYSTEM_NAMESPACE

    def on_embedded(self) -> list[Json]:
        """Return the rules on an embedded server, which gives each part one cluster role."""
        scoped = (one for rules in self.namespaced.values() for one in rules)
        return [*self.cluster, *scoped, *self.embedded, *(METRICS if self.serves else ())]
