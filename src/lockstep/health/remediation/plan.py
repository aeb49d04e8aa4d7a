"""What findings ask for, as a function of what is seen. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from lockstep.api import names
from lockstep.api.core import Node, Pod, Taint
from lockstep.api.health_policy import HealthPolicySpec
from lockstep.api.node_health import Finding
from lockstep.health.core.holding import holds
from lockstep.health.core.policy import DEFAULT

REASON: Final = "UnhealthyDevice"
NODE_REASON: Final = "UnhealthyNode"
_FINISHED: Final = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class Leaving:
    """A pod that has to go, and why."""

    pod: Pod
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a node's findings ask for: devices to fence and why, and why to keep pods off."""

    fenced: Mapping[str, str] = field(default_factory=dict)
    tainted: str = ""

    @property
    def anything(self) -> bool:
        """Whether there is anything to do."""
        return bool(self.fenced or self.tainted)


def wanted(findings: Iterable[Finding], policy: HealthPolicySpec = DEFAULT) -> Wanted:
    """Return what *findings* ask for that *policy* lets be done without being asked."""
    fenced: dict[str, str] = {}
    tainted = ""
    for one in findings:
        if one.action not in policy.acts or one.confidence < policy.confidence:
            continue
        kind, _, index = one.device.partition("/")
        if kind in ("gpu", "nic") and index.isdecimal():
            fenced.setdefault(one.device, one.cause)
        else:
            tainted = tainted or (f"{one.device}: {one.cause}" if one.device else one.cause)
    return Wanted(dict(sorted(fenced.items())), tainted)


def annotation(what: Wanted) -> str | None:
    """Return what the node's annotation says of fenced devices; None where none are."""
    return ",".join(what.fenced) or None


def taints(node: Node, what: Wanted) -> list[Taint]:
    """Return the taints that *node* is to have: ours as wanted, all others as they are."""
    others = [one for one in node.spec.taints if one.key != names.UNHEALTHY_TAINT]
    if not what.tainted:
        return others
    ours = Taint(key=names.UNHEALTHY_TAINT, effect="NoSchedule")
    return node.spec.taints if ours in node.spec.taints else [*others, ours]


def leaving(pods: Iterable[Pod], what: Wanted, queues: Collection[str] = ()) -> list[Leaving]:
    """Return the pods that have to go: those that hold a fenced device, or are on an ill node.

    Only pods that something makes again, none that are ending already, and where *queues* are
    named those of their gangs alone.
    """
    found = []
    for pod in pods:
        if pod.status.phase in _FINISHED or pod.metadata.deletion_timestamp is not None:
            continue
        if queues and pod.metadata.labels.get(names.QUEUE_LABEL) not in queues:
            continue
        if not any(owner.controller for owner in pod.metadata.owner_references):
            continue
        hit = [device for device in what.fenced if device in holds(pod)]
        if hit:
            words = ", ".join(f"{device}: {what.fenced[device]}" for device in hit)
            found.append(Leaving(pod, REASON, f"{pod.spec.node_name}: {words}"))
        elif what.tainted and names.GANG_LABEL in pod.metadata.labels:
            found.append(Leaving(pod, NODE_REASON, f"{pod.spec.node_name}: {what.tainted}"))
    return found


def message(what: Wanted) -> str:
    """Return in words what is done and why."""
    parts = [f"{device} is not handed out ({cause})" for device, cause in what.fenced.items()]
    if what.tainted:
        parts.append(f"no new pods ({what.tainted})")
    return "; ".join(parts)
