"""What may be measured of a service, and how fast its replicas may change."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

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
