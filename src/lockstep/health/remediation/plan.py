"""What findings ask for, as a function of what is seen. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from lockstep.api import names
from lockstep.api.core import Node, Pod, Taint
from lockstep.api.health_policy import HealthPolicySpec
from lockstep.api.node_health import Finding, NodeHealth, Reset
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


RETURNING: Final = "its return checks have not passed yet"


def returning(health: NodeHealth, what: Wanted, policy: HealthPolicySpec) -> Wanted:
    """Return what stays fenced though no finding asks for it any more: until checks have passed."""
    status = health.status
    if not policy.return_checks or (status.asked and verdict(health, policy) == "passed"):
        return Wanted()
    devices = [one for one in status.fenced if one not in what.fenced]
    tainted = RETURNING if status.tainted and not what.tainted else ""
    return Wanted(dict.fromkeys(devices, RETURNING), tainted)


def verdict(health: NodeHealth, policy: HealthPolicySpec) -> Literal["waits", "failed", "passed"]:
    """Return how far the checks have come that were asked for last."""
    checked, network = health.spec.checked, health.status.network
    local = any(one != "network" for one in policy.return_checks)
    if local and (checked is None or checked.asked != health.status.asked):
        return "waits"
    if local and checked is not None and not checked.passed:
        return "failed"
    if "network" not in policy.return_checks:
        return "passed"
    if network is None:
        return "waits"
    return "failed" if network.state == "failed" else "passed"


def asked(health: NodeHealth, stays: Wanted, policy: HealthPolicySpec, now: str) -> str | None:
    """Return since when checks are asked for: anew once what failed was taken away by hand."""
    if not stays.anything:
        return None
    before = health.status.asked
    failed = before is not None and verdict(health, policy) == "failed"
    told = any(one.by == "checks" for one in health.spec.findings)
    return now if before is None or (failed and not told) else before


def both(what: Wanted, stays: Wanted) -> Wanted:
    """Return what is fenced for either reason."""
    fenced = dict(sorted({**stays.fenced, **what.fenced}.items()))
    return Wanted(fenced, what.tainted or stays.tainted)


def resets(
    health: NodeHealth, what: Wanted, policy: HealthPolicySpec, pods: Iterable[Pod], now: str
) -> Reset | None:
    """Return the devices to be reset now: fenced ones that nothing uses, once for each finding."""
    there, done = health.status.reset, health.spec.reset
    if there is not None and (done is None or done.asked != there.asked):
        return there
    running = [one for one in pods if one.status.phase not in _FINISHED]
    used = {device for pod in running for device in holds(pod)}
    gangs = any(names.GANG_LABEL in pod.metadata.labels for pod in running)
    after = there.asked if there is not None else ""
    wanted_ = {
        one.device if one.device in what.fenced else ""
        for one in health.spec.findings
        if one.action in policy.reset
        and one.confidence >= policy.confidence
        and one.last > after
        and (one.device in what.fenced or what.tainted)
    }
    free = sorted(one for one in wanted_ if (one not in used if one else not gangs))
    return Reset(asked=now, devices=free) if free else there


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


def held(node: Node) -> bool:
    """Return whether *node* shows a fence: devices of it, or the node itself."""
    tainted = any(one.key == names.UNHEALTHY_TAINT for one in node.spec.taints)
    return tainted or names.FENCED_ANNOTATION in node.metadata.annotations


def marked(node: Node) -> bool:
    """Return whether *node* shows a fence, or that its network is known to be slow."""
    return held(node) or slow_taints(node, slow=False) != node.spec.taints


def slow_taints(node: Node, slow: bool) -> list[Taint]:
    """Return the taints of *node* with the one that has the scheduler take it last, or without."""
    others = [one for one in node.spec.taints if one.key != names.SLOW_TAINT]
    ours = Taint(key=names.SLOW_TAINT, effect="PreferNoSchedule")
    if not slow:
        return others
    return node.spec.taints if ours in node.spec.taints else [*others, ours]


def leaving(
    pods: Iterable[Pod],
    what: Wanted,
    queues: Collection[str] = (),
    jobs: Mapping[str, str] | None = None,
) -> list[Leaving]:
    """Return the pods that have to go: those that hold a fenced device, or are on an ill node.

    Only pods that something makes again, none that are ending already, and where *queues* or
    labels of *jobs* are named those of their gangs, or with these labels, alone.
    """
    found = []
    for pod in pods:
        if pod.status.phase in _FINISHED or pod.metadata.deletion_timestamp is not None:
            continue
        if queues and pod.metadata.labels.get(names.QUEUE_LABEL) not in queues:
            continue
        if not (jobs or {}).items() <= pod.metadata.labels.items():
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
