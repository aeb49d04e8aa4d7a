"""What happened in a simulation: placements, lives of jobs, use over time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from lockstep.sim.result.job_records import JobRecords
from lockstep.sim.result.placements_log import PlacementsLog
from lockstep.sim.result.shapes import StandingShapes


class Rearranged(NamedTuple):
    """Jobs that moved at some time so that another fitted."""

    time: float
    job: str
    moved: tuple[str, ...]
    price: int
    """GPU-seconds that it was to cost."""


class Compared(NamedTuple):
    """One job's communication, in seconds a step averaged over its ranks, without overlap."""

    job: str
    start: float
    """When it first had what it needs, in seconds after the start."""
    seconds: float
    ideal: float
    """The same where it would stand were it alone."""

    @property
    def ratio(self) -> float:
        """Return how many times the best it is; 1 is the best."""
        return self.seconds / self.ideal if self.ideal else 1.0


class Sample(NamedTuple):
    """The cluster at one moment; amounts in GPUs."""

    time: float
    capacity: int
    used: float
    """Shares count as fractions."""
    stranded: float
    """Free GPUs on nodes that are partly in use."""
    waiting: float
    """GPUs that waiting jobs ask for."""


@dataclass(slots=True)
class Integral:
    """Amounts summed over time, in GPU-seconds."""

    capacity: float = 0.0
    used: float = 0.0
    free: float = 0.0
    stranded: float = 0.0
    pressed_capacity: float = 0.0
    """The capacity while jobs waited."""
    pressed_used: float = 0.0


@dataclass(slots=True)
class PoolBill:
    """What one node pool did, and what that cost in the currency of its prices."""

    node_hours: float = 0.0
    cost: float = 0.0
    bought: int = 0
    most: int = 0
    """Nodes that there were at once."""
    reclaimed: int = 0
    """Nodes that the cloud has taken back."""


@dataclass(slots=True)
class Result:
    """A whole run."""

    seed: int
    end: float = 0.0
    lives: JobRecords = field(default_factory=JobRecords)
    stays: PlacementsLog = field(init=False)
    shapes: StandingShapes = field(default_factory=StandingShapes)
    """What stood where communication was paid."""
    samples: list[Sample] = field(default_factory=list)
    total: Integral = field(default_factory=Integral)
    queue_use: dict[str, float] = field(default_factory=dict)
    """GPU-seconds by queue."""
    evictions: list[tuple[str, str]] = field(default_factory=list)
    """Who took whose place, a job each."""
    communication: list[Compared] = field(default_factory=list)
    """Jobs that state their parallelism, where a comparison was asked for."""
    rearrangements: list[Rearranged] = field(default_factory=list)
    bills: dict[str, PoolBill] = field(default_factory=dict)
    """By node pool; under ``fixed`` the nodes that are always there, where they have prices."""
    decisions: int = 0
    node_faults: int = 0

    def __post_init__(self) -> None:
        self.stays = PlacementsLog(self.lives.names)
