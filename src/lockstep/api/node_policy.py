"""NodePolicy: in which order nodes are filled."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from lockstep.api.meta import LabelSelector, OwnObject
from lockstep.api.names import GROUP, VERSION
from lockstep.api.resource import Resource
from lockstep.api.wire import Wire


class NodeTier(Wire, frozen=True):
    """Nodes that are as good as each other, such as all spot instances."""

    name: Annotated[str, Meta(min_length=1, max_length=63)]
    """Name of the tier."""
    selector: LabelSelector
    """Labels of its nodes; the first tier that matches counts."""


class NodePolicySpec(Wire, frozen=True):
    """The tiers, and what follows them."""

    tiers: Annotated[list[NodeTier], Meta(min_length=1, max_length=16)]
    """Tiers in the order in which they are filled; other nodes come last."""
    queues: list[str] = []
    """Queues whose gangs follow the policy unless they name another."""


class NodePolicy(OwnObject, frozen=True):
    """Ordered tiers of nodes: on-demand first, spot next."""

    spec: NodePolicySpec
    kind: str = "NodePolicy"


NODE_POLICIES = Resource(GROUP, VERSION, "nodepolicies", "NodePolicy", False, NodePolicy)
