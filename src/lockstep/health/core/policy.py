"""Whether a policy lets a node be acted upon now: shares of domains, an hour's count, cool-down."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from lockstep.api import duration, timestamp
from lockstep.api.health_policy import HealthPolicy, HealthPolicySpec
from lockstep.api.node_health import Finding

HOUR: Final = 3600.0
AWAY: Final = 120.0
"""Seconds for which storage counts as away after a line that says so."""
DEFAULT: Final = HealthPolicySpec()
"""What holds where no policy is for a node."""


@dataclass(frozen=True, slots=True)
class Acted:
    """A node of the same domain: whether it is fenced now, and when it was acted upon."""

    node: str
    held: bool
    at: float | None


def chosen(policies: Iterable[HealthPolicy], labels: Mapping[str, str]) -> HealthPolicySpec:
    """Return the policy for a node with *labels*: the one that asks for most of them, by name."""
    fit = [one for one in policies if one.spec.nodes.items() <= labels.items()]
    best = min(fit, key=lambda one: (-len(one.spec.nodes), one.metadata.name), default=None)
    return best.spec if best is not None else DEFAULT


def away(findings: Iterable[tuple[str, Finding]], now: float) -> list[str]:
    """Return the nodes whose storage is away: a finding that pauses jobs, of the last minutes."""
    return sorted(
        {
            node
            for node, one in findings
            if one.class_ == "storage"
            and one.action == "pause_job"
            and now - (timestamp.read(one.last) or 0.0) < AWAY
        }
    )


def objection(
    policy: HealthPolicySpec, node: str, size: int, acted: Iterable[Acted], now: float
) -> str:
    """Return why *node*, one of *size* in its domain, is not acted upon now; empty if it may be."""
    acted = list(acted)
    others = [one for one in acted if one.node != node]
    held = sum(one.held for one in others)
    most = max(1, int(policy.share * size))
    if held >= most:
        return f"{held} of {size} nodes of its domain are fenced, and {most} may be (spec.share)"
    if policy.per_hour is not None:
        late = sum(one.at is not None and now - one.at < HOUR for one in others)
        if late >= policy.per_hour:
            return f"{late} nodes were acted upon within an hour (spec.perHour)"
    own = next((one.at for one in acted if one.node == node and one.at is not None), None)
    rest = duration.parse(policy.cool_down)
    if own is not None and now - own < rest:
        return f"it was acted upon {now - own:.0f} s ago (spec.coolDown: {policy.cool_down})"
    return ""
