"""NodeHealth: what is wrong with one node or its devices, and what was done about it."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, field

from lockstep.api.diagnosis import Class
from lockstep.api.meta import Condition, ObjectMeta
from lockstep.api.names import API_VERSION, GROUP, VERSION
from lockstep.api.resource import Resource
from lockstep.api.wire import Wire

MOST_FINDINGS = 64


class Finding(Wire, frozen=True):
    """One thing that is wrong with a node or with one of its devices."""

    cause: Annotated[str, Meta(description="What happened, in words.")]
    class_: Class = field(default="unknown", name="class")
    action: Annotated[str, Meta(description="What it asks for.")] = "observe"
    device: Annotated[
        str, Meta(description="As gpu/3 or nic/0, or a PCI address; empty: the node itself.")
    ] = ""
    confidence: Annotated[float, Meta(ge=0, le=1)] = 0.0
    evidence: Annotated[str, Meta(description="The last line that tells it.")] = ""
    since: Annotated[str, Meta(description="When it was seen first.")] = ""
    last: Annotated[str, Meta(description="When it was seen last.")] = ""
    count: Annotated[int, Meta(ge=1, description="How often.")] = 1


class NodeHealthSpec(Wire, frozen=True):
    """What the node agent found; delete a finding to have what was done about it undone."""

    findings: Annotated[
        list[Finding], Meta(max_length=MOST_FINDINGS, description="What is wrong, one by one.")
    ] = []
    read: Annotated[
        str,
        Meta(description="Up to where the kernel log has been read, so that none counts twice."),
    ] = ""


class NodeHealthStatus(Wire, frozen=True):
    """What was done about it."""

    fenced: Annotated[list[str], Meta(description="Devices that are not handed out.")] = []
    tainted: Annotated[bool, Meta(description="Whether new pods are kept off the node.")] = False
    acted_at: Annotated[str | None, Meta(description="When the node was acted upon last.")] = None
    message: str = ""
    conditions: list[Condition] = []


class NodeHealth(Wire, frozen=True):
    """The health of the node of the same name."""

    metadata: ObjectMeta
    spec: NodeHealthSpec = NodeHealthSpec()
    status: NodeHealthStatus = NodeHealthStatus()
    api_version: str = API_VERSION
    kind: str = "NodeHealth"


NODE_HEALTHS = Resource(GROUP, VERSION, "nodehealths", "NodeHealth", False, NodeHealth)
