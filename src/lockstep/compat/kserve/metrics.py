"""What may be measured of a service, and how fast its replicas may change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

_DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
Per = Literal["utilization", "average", "value"]


@dataclass(frozen=True, slots=True)
class Metric:
    """One thing that is measured.

    ``utilization``: per cent of what a replica asks for. ``average``: so much for each replica.
    ``value``: so much for all together.
    """

    kind: Literal["load", "process", "gpu", "server", "prometheus"]
    name: str
    target: float
    per: Per
    address: str = ""
    query: str = ""
    base: float = 0.0
    """Of what ``utilization`` is counted: CPUs, bytes."""
    field: str = ""
    """Where it stands in the spec."""


@dataclass(frozen=True, slots=True)
class Limit:
    """So many replicas, or so many per cent of them, in so many seconds."""

    kind: Literal["Pods", "Percent"]
    value: int
    seconds: int


@dataclass(frozen=True, slots=True)
class Direction:
    """How fast the number may change one way."""

    stabilization: float
    limits: tuple[Limit, ...]
    select: Literal["Max", "Min", "Disabled"] = "Max"


@dataclass(frozen=True, slots=True)
class Behavior:
    """How fast the number may change."""

    up: Direction = field(
        default_factory=lambda: Direction(0.0, (Limit("Percent", 100, 15), Limit("Pods", 4, 15)))
    )
    down: Direction = field(default_factory=lambda: Direction(300.0, (Limit("Percent", 100, 15),)))


@dataclass(frozen=True, slots=True)
class Period:
    """A time of the week or day in which there are at least so many replicas."""

    start: str
    end: str
    replicas: int
    zone: str = "UTC"


def fields(expression: str) -> Sequence[set[int]]:
    """Return the five fields of a cron expression as sets.

    Raises:
        ValueError: when one cannot be read.
    """
    parts = expression.split()
    if len(parts) != 5:
        raise ValueError(f"{expression!r} is not 'MINUTE HOUR DAY MONTH WEEKDAY'")
    bounds = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
    found = [_field(part, *bound) for part, bound in zip(parts, bounds, strict=True)]
    found[4] = {day % 7 for day in found[4]}
    return found


def _field(text: str, least: int, most: int) -> set[int]:
    found: set[int] = set()
    for part in text.lower().split(","):
        span, _, step = part.partition("/")
        first, dash, second = span.partition("-")
        if span == "*":
            start, end = least, most
        else:
            start = _number(first, most)
            end = _number(second, most) if dash else (most if step else start)
        every = int(step) if step else 1
        if not (least <= start <= end <= most) or every < 1:
            raise ValueError(f"{text!r} is not from {least} to {most}")
        found |= set(range(start, end + 1, every))
    return found


def _number(text: str, most: int) -> int:
    if most == 7 and text[:3] in _DAYS:
        return (_DAYS.index(text[:3]) + 1) % 7
    return int(text)
