"""HealthPolicy: what is done about sick nodes without being asked, and how much of it at most."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

from lockstep.api.duration import Duration
from lockstep.api.meta import OwnObject
from lockstep.api.names import GROUP, VERSION
from lockstep.api.node_health import CheckName
from lockstep.api.resource import Resource
from lockstep.api.wire import Wire

Isolating = Literal["isolate_node", "reset_gpu"]


class HealthPolicySpec(Wire, frozen=True):
    """Which nodes it is for, what needs no asking, and the limits."""

    nodes: dict[str, str] = {}
    """Labels of the nodes that it is for; none: all that no other is for."""
    queues: list[str] = []
    """Queues whose pods are ended; none: those of all. Others stay."""
    jobs: dict[str, str] = {}
    """Labels of the pods that are ended; none: all. Others stay."""
    acts: list[Isolating] = field(default_factory=lambda: ["isolate_node", "reset_gpu"])
    """What is done without being asked; none: nothing."""
    confidence: Annotated[float, Meta(ge=0.5, le=1)] = 0.8
    """How sure a finding must be to be acted upon."""
    dry_run: bool = False
    """Say what would be done, and do nothing."""
    domain: str = ""
    """Label that tells domains apart; none: the cluster is one."""
    share: Annotated[float, Meta(gt=0, le=1)] = 0.25
    """Part of a domain's nodes that are fenced at a time, or one."""
    per_hour: Annotated[int, Meta(ge=1)] | None = None
    """Nodes of a domain that are acted upon in an hour."""
    cool_down: Duration = "0s"
    """Time between two acts on one node."""
    return_checks: list[CheckName] = field(
        default_factory=lambda: ["matmul", "memory", "disk", "network"]
    )
    """What a node must pass before it comes back; none: nothing."""
    reset: list[Isolating] = field(default_factory=list)
    """Findings whose device the agent's hook resets once nothing uses it."""
    lemon: Annotated[int, Meta(ge=0)] = 3
    """Jobs that fail on a node until it is isolated; 0: never."""
    storage_away: Annotated[int, Meta(ge=0)] = 2
    """Nodes without their storage from which all acts wait; 0: never."""


class HealthPolicy(OwnObject, frozen=True):
    """What is done about sick nodes without being asked."""

    spec: HealthPolicySpec = HealthPolicySpec()
    kind: str = "HealthPolicy"


HEALTH_POLICIES = Resource(GROUP, VERSION, "healthpolicies", "HealthPolicy", False, HealthPolicy)
