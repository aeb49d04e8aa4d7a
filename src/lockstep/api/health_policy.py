"""HealthPolicy: what is done about sick nodes without being asked, and how much of it at most."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

from lockstep.api.duration import Duration
from lockstep.api.meta import ObjectMeta
from lockstep.api.names import API_VERSION, GROUP, VERSION
from lockstep.api.node_health import CheckName
from lockstep.api.resource import Resource
from lockstep.api.wire import Wire

Isolating = Literal["isolate_node", "reset_gpu"]


class HealthPolicySpec(Wire, frozen=True):
    """Which nodes it is for, what needs no asking, and the limits."""

    nodes: Annotated[
        dict[str, str],
        Meta(description="Labels of the nodes that it is for; none: all that no other is for."),
    ] = {}
    queues: Annotated[
        list[str],
        Meta(description="Queues whose pods are ended; none: those of all. Others stay."),
    ] = []
    jobs: Annotated[
        dict[str, str],
        Meta(description="Labels of the pods that are ended; none: all. Others stay."),
    ] = {}
    acts: Annotated[
        list[Isolating], Meta(description="What is done without being asked; none: nothing.")
    ] = field(default_factory=lambda: ["isolate_node", "reset_gpu"])
    confidence: Annotated[
        float, Meta(ge=0.5, le=1, description="How sure a finding must be to be acted upon.")
    ] = 0.8
    dry_run: Annotated[bool, Meta(description="Say what would be done, and do nothing.")] = False
    domain: Annotated[
        str, Meta(description="Label that tells domains apart; none: the cluster is one.")
    ] = ""
    share: Annotated[
        float,
        Meta(gt=0, le=1, description="Part of a domain's nodes that are fenced at a time, or one."),
    ] = 0.25
    per_hour: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="Nodes of a domain that are acted upon in an hour."),
    ] = None
    cool_down: Annotated[Duration, Meta(description="Time between two acts on one node.")] = "0s"
    return_checks: Annotated[
        list[CheckName],
        Meta(description="What a node must pass before it comes back; none: nothing."),
    ] = field(default_factory=lambda: ["matmul", "memory", "disk", "network"])
    reset: Annotated[
        list[Isolating],
        Meta(description="Findings whose device the agent's hook resets once nothing uses it."),
    ] = field(default_factory=list)
    lemon: Annotated[
        int, Meta(ge=0, description="Jobs that fail on a node until it is isolated; 0: never.")
    ] = 3
    storage_away: Annotated[
        int,
        Meta(ge=0, description="Nodes without their storage from which all acts wait; 0: never."),
    ] = 2


class HealthPolicy(Wire, frozen=True):
    """What is done about sick nodes without being asked."""

    metadata: ObjectMeta
    spec: HealthPolicySpec = HealthPolicySpec()
    api_version: str = API_VERSION
    kind: str = "HealthPolicy"


HEALTH_POLICIES = Resource(GROUP, VERSION, "healthpolicies", "HealthPolicy", False, HealthPolicy)
