"""How many replicas metrics ask for, by the rules of Kubernetes' HorizontalPodAutoscaler."""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final
from zoneinfo import ZoneInfo

from lockstep.api.cron import parse
from lockstep.compat.kserve.metrics import Behavior, Direction, Metric, Period

TOLERANCE: Final = 0.1
"""By how much of its target a metric may be off before the number of replicas changes."""
_LINE: Final = re.compile(r"^([a-zA-Z_:][\w:]*)(?:\{.*\})?\s+(\S+)")


def wanted(metric: Metric, reading: float, current: int) -> int:
    """Return how many replicas a *reading* asks for; it is the sum over all replicas.

    For ``utilization`` it is the sum of per cents.
    """
    if current == 0 or metric.target <= 0:
        return current
    if metric.per == "value":
        ratio = reading / metric.target
        return current if abs(ratio - 1) <= TOLERANCE else math.ceil(round(current * ratio, 6))
    ratio = reading / current / metric.target
    if abs(ratio - 1) <= TOLERANCE:
        return current
    return math.ceil(round(reading / metric.target, 6))


@dataclass(slots=True)
class Pace:
    """Holds the number of replicas to how fast it may change."""

    asked: deque[tuple[float, int]] = field(default_factory=deque)
    changed: deque[tuple[float, int]] = field(default_factory=deque)

    def paced(self, now: float, current: int, target: int, behavior: Behavior) -> int:
        """Return how many replicas there may be *now* on the way from *current* to *target*."""
        longest = max(behavior.up.stabilization, behavior.down.stabilization)
        self.asked.append((now, target))
        while self.asked and self.asked[0][0] < now - longest:
            self.asked.popleft()
        least = min(n for at, n in self.asked if at >= now - behavior.up.stabilization)
        most = max(n for at, n in self.asked if at >= now - behavior.down.stabilization)
        calm = min(max(current, least), most)
        if calm > current:
            return min(calm, self._bound(now, current, behavior.up, 1))
        if calm < current:
            return max(calm, self._bound(now, current, behavior.down, -1))
        return current

    def note(self, now: float, before: int, after: int) -> None:
        """Take that the number was changed."""
        if after != before:
            self.changed.append((now, after - before))
        while self.changed and self.changed[0][0] < now - 1800:
            self.changed.popleft()

    def _bound(self, now: float, current: int, way: Direction, sign: int) -> int:
        if way.select == "Disabled":
            return current
        bounds = []
        for one in way.limits:
            recent = sum(
                delta for at, delta in self.changed if at > now - one.seconds and delta * sign > 0
            )
            start = current - recent
            step = one.value if one.kind == "Pods" else math.ceil(start * one.value / 100)
            bounds.append(max(0, start + sign * step))
        if not bounds:
            return current + sign * 1_000_000
        widest = max if (way.select == "Max") == (sign > 0) else min
        return widest(bounds)


def scraped(text: str) -> dict[str, float]:
    """Return the sums of all series of a page of metrics, by the metric's name."""
    found: dict[str, float] = {}
    for line in text.splitlines():
        match = _LINE.match(line)
        if match is None:
            continue
        try:
            value = float(match[2])
        except ValueError:
            continue
        if math.isfinite(value):
            found[match[1]] = found.get(match[1], 0.0) + value
    return found


# --- schedules ---


def at_least(periods: Iterable[Period], now: float) -> int:
    """Return how many replicas there are to be *now* by the schedule alone."""
    return max((one.replicas for one in periods if within(one, now)), default=0)


def within(period: Period, now: float) -> bool:
    """Return whether *now* lies after the period's last start and before its end."""
    zone = ZoneInfo(period.zone)
    start, end = last(period.start, now, zone), last(period.end, now, zone)
    return start is not None and (end is None or start > end)


def last(expression: str, now: float, zone: ZoneInfo) -> float | None:
    """Return when a cron expression was last true, within the last 8 days; None if never.

    Raises:
        ValueError: when the expression cannot be read.
    """
    schedule = parse(expression)
    minute = int(now // 60) * 60
    for back in range(8 * 24 * 60):
        at = minute - back * 60
        moment = datetime.fromtimestamp(at, zone)
        if moment.hour not in schedule.hours or moment.minute not in schedule.minutes:
            continue
        if schedule.has(moment):
            return float(at)
    return None


def utilization(reading: Mapping[str, float], base: float) -> float:
    """Return the per cents of replicas of what each asks for, summed up."""
    return sum(value / base * 100 for value in reading.values()) if base else 0.0
