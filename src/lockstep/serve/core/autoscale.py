"""How many replicas a load needs, by the rules and defaults of Knative's autoscaler.

Two windows of the load, a long and a short one; while the short one asks for twice what there is,
its answer counts and nothing is taken away (panic).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from lockstep.api import duration

PREFIX: Final = "autoscaling.knative.dev/"
UTILIZATION: Final = 0.7
DEFAULT_TARGET: Final = {"concurrency": 100.0, "rps": 200.0}


@dataclass(frozen=True, slots=True)
class Policy:
    """What a service asks of its autoscaler; times in seconds."""

    target: float = DEFAULT_TARGET["concurrency"] * UTILIZATION
    """Load that one replica is to carry."""
    minimum: int = 1
    maximum: int = 0
    window: float = 60.0
    panic_share: float = 0.1
    panic_threshold: float = 2.0
    up_rate: float = 1000.0
    down_rate: float = 2.0
    grace: float = 30.0
    """Time without load, after the window, until the last replica goes."""

    @property
    def panic_window(self) -> float:
        """Return the length of the short window."""
        return max(1.0, self.window * self.panic_share)


def policy(
    annotations: Mapping[str, str],
    *,
    minimum: int,
    maximum: int,
    metric: str = "concurrency",
    target: float | None = None,
    concurrency: int = 0,
) -> Policy:
    """Return the policy of a service; Knative's *annotations* say more than its spec can.

    Raises:
        ValueError: when an annotation has no sense; the message names it.
    """

    def number(name: str, default: float, least: float, most: float) -> float:
        text = annotations.get(PREFIX + name)
        if text is None:
            return default
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not least <= value <= most:
            raise ValueError(f"annotation {PREFIX}{name}: {text!r}: from {least:g} to {most:g}")
        return value

    def seconds(name: str, default: float, least: float, most: float) -> float:
        text = annotations.get(PREFIX + name)
        if text is None:
            return default
        value = duration.parse(text)
        if not least <= value <= most:
            raise ValueError(f"annotation {PREFIX}{name}: {text!r}: from {least:g}s to {most:g}s")
        return value

    per_cent = number("target-utilization-percentage", UTILIZATION * 100, 1, 100)
    stated = (
        number("target", target or 0.0, 0.01, math.inf)
        if target or (PREFIX + "target" in annotations)
        else 0.0
    )
    carried = stated or float(concurrency) or DEFAULT_TARGET[metric]
    if concurrency and metric == "concurrency":
        carried = min(carried, float(concurrency))
    least = int(number("min-scale", minimum, 0, 1e6))
    return Policy(
        target=max(0.01, carried * per_cent / 100),
        minimum=least,
        maximum=int(number("max-scale", maximum, 0, 1e6)),
        window=seconds("window", 60.0, 6.0, 3600.0),
        panic_share=number("panic-window-percentage", 10.0, 1.0, 100.0) / 100,
        panic_threshold=number("panic-threshold-percentage", 200.0, 110.0, 1000.0) / 100,
        grace=seconds("scale-to-zero-pod-retention-period", 30.0, 0.0, 3600.0),
    )


@dataclass(slots=True)
class Autoscaler:
    """The loads of one service in its windows, and whether it panics."""

    since: float
    """When it began to look; before a whole window is seen, nothing is taken away."""
    loads: deque[tuple[float, float]] = field(default_factory=deque)
    panic_since: float | None = None
    panic_most: int = 0
    idle_since: float | None = None

    def record(self, now: float, load: float, policy: Policy) -> None:
        """Take the average load of the second that ends *now*."""
        self.loads.append((now, load))
        while self.loads and self.loads[0][0] <= now - policy.window:
            self.loads.popleft()
        if load > 0:
            self.idle_since = None
        elif self.idle_since is None:
            self.idle_since = now

    def average(self, now: float, length: float) -> float:
        """Return the mean load of the last *length* seconds, or of those that were seen."""
        recent = [load for at, load in self.loads if at > now - length]
        return sum(recent) / len(recent) if recent else 0.0

    def desired(self, now: float, ready: int, policy: Policy) -> int:
        """Return how many replicas there are to be, *ready* of them serving now."""
        base = max(1, ready)
        most = math.ceil(policy.up_rate * base)
        least = math.floor(base / policy.down_rate)
        stable = math.ceil(self.average(now, policy.window) / policy.target)
        sudden = math.ceil(self.average(now, policy.panic_window) / policy.target)
        wanted = min(max(stable, least), most)
        burst = min(max(sudden, least), most)
        if sudden / base >= policy.panic_threshold:
            self.panic_since = now
        elif self.panic_since is not None and now - self.panic_since > policy.window:
            self.panic_since, self.panic_most = None, 0
        if self.panic_since is not None:
            self.panic_most = wanted = max(self.panic_most, burst)
        return self._bounded(now, ready, wanted, policy)

    def _bounded(self, now: float, ready: int, wanted: int, policy: Policy) -> int:
        if stable_zero := self._idle(now, policy):
            wanted = 0
        elif wanted == 0 or not self.loads:
            wanted = max(1, wanted)
        if not stable_zero and now - self.since < policy.window:
            wanted = max(wanted, ready)
        wanted = max(wanted, policy.minimum)
        return min(wanted, policy.maximum) if policy.maximum else wanted

    def _idle(self, now: float, policy: Policy) -> bool:
        """Return whether there was no load for a whole window and the grace after it."""
        return (
            self.idle_since is not None
            and now - self.idle_since >= policy.window + policy.grace
            and now - self.since >= policy.window
        )
