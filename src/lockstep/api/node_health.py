"""NodeHealth: what is wrong with one node or its devices, and what was done about it."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import Meta, field

from lockstep.api.diagnosis import Class
from lockstep.api.meta import Condition, OwnObject
from lockstep.api.names import GROUP, VERSION
from lockstep.api.resource import Resource
from lockstep.api.wire import Wire

MOST_FINDINGS = 64

NETWORK_CAUSE: Final = "network check: "
"""What the causes of findings begin with that a measured network left."""

CheckName = Literal["matmul", "memory", "disk", "network"]


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
    by: Annotated[
        Literal["", "jobs", "checks"],
        Meta(description="What found it: checks at a return, failures of jobs; the agent else."),
    ] = ""


class CheckResult(Wire, frozen=True):
    """What one check of a node says."""

    name: str
    state: Literal["ok", "failed", "skipped"]
    device: Annotated[str, Meta(description="As gpu/3; empty: the node itself.")] = ""
    evidence: str = ""


class Checked(Wire, frozen=True):
    """What the node's agent found when it was asked for checks."""

    asked: Annotated[str, Meta(description="When that was asked, as status.asked says it.")]
    results: list[CheckResult] = []

    @property
    def passed(self) -> bool:
        """Whether no check failed."""
        return all(one.state != "failed" for one in self.results)


class Reset(Wire, frozen=True):
    """Devices to be reset by the hook that the node's agent was given."""

    asked: Annotated[str, Meta(description="When.")]
    devices: Annotated[list[str], Meta(description="As gpu/3; empty: the node itself.")] = []


class ResetDone(Wire, frozen=True):
    """What the hook did."""

    asked: str
    failed: Annotated[list[str], Meta(description="Devices that were not reset, and why.")] = []


class NodeHealthSpec(Wire, frozen=True):
    """What the node agent found; delete a finding to have what was done about it undone."""

    findings: Annotated[
        list[Finding], Meta(max_length=MOST_FINDINGS, description="What is wrong, one by one.")
    ] = []
    read: Annotated[
        str,
        Meta(description="Up to where the kernel log has been read, so that none counts twice."),
    ] = ""
    checked: Annotated[Checked | None, Meta(description="The last checks that were asked for.")] = (
        None
    )
    reset: Annotated[ResetDone | None, Meta(description="The last resets.")] = None


class NodeHealthStatus(Wire, frozen=True):
    """What was done about it."""

    fenced: Annotated[list[str], Meta(description="Devices that are not handed out.")] = []
    tainted: Annotated[bool, Meta(description="Whether new pods are kept off the node.")] = False
    acted_at: Annotated[str | None, Meta(description="When the node was acted upon last.")] = None
    asked: Annotated[
        str | None, Meta(description="Since when the node waits for its return checks.")
    ] = None
    checks: Annotated[list[CheckName], Meta(description="Which of them are wanted.")] = []
    network: Annotated[
        CheckResult | None, Meta(description="What the node measured with others.")
    ] = None
    reset: Annotated[Reset | None, Meta(description="What the hook is to reset.")] = None
    message: str = ""
    conditions: list[Condition] = []


class NodeHealth(OwnObject, frozen=True):
    """The health of the node of the same name."""

    spec: NodeHealthSpec = NodeHealthSpec()
    status: NodeHealthStatus = NodeHealthStatus()
    kind: str = "NodeHealth"


NODE_HEALTHS = Resource(GROUP, VERSION, "nodehealths", "NodeHealth", False, NodeHealth)


def slow_network(health: NodeHealth) -> str:
    """Return what makes the network of a node a slow one; empty where nothing does."""
    found = (one for one in health.spec.findings if one.cause.startswith(NETWORK_CAUSE))
    return next((one.evidence or one.cause for one in found), "")
