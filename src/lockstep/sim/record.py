"""What happened in a simulation: placements, lives of jobs, use over time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from lockstep.sim.workload import Workload


class Stay(NamedTuple):
    """One pod's stay on one node; times in seconds after the start."""

    job: str
    pod: str
    rank: int
    node: str
    gpus: tuple[int, ...]
    nics: tuple[int, ...]
    start: float
    end: float | None
    """None: it was still there at the end of the simulation."""


class Paid(NamedTuple):
    """What a job that states its parallelism paid where it first stood."""

    seconds: float
    """Communication a step, averaged over its ranks, without overlap."""
    pods: frozenset[str]
    """The members that it started with."""


@dataclass(slots=True)
class Life:
    """How one job fared."""

    work: Workload
    started: float | None = None
    """When it first had all the members that it needs."""
    paid: Paid | None = None
    """What its communication cost there; None where it states no parallelism."""
    ended: float | None = None
    restarts: int = 0
    """Fresh starts after a fault of a node or of its own."""
    preemptions: int = 0
    """Times it had to give way, in whole or in part."""
    moves: int = 0
    """Times it was moved so that another job fitted."""
    useful: float = 0.0
    """GPU-seconds of work that was kept."""
    lost: float = 0.0
    """GPU-seconds of work done again, because it came after the last checkpoint."""
    waiting: str = ""
    """Why it waits, when it waits at the end."""


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
class Result:
    """A whole run."""

    seed: int
    end: float = 0.0
    stays: list[Stay] = field(default_factory=list)
    lives: list[Life] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    total: Integral = field(default_factory=Integral)
    queue_use: dict[str, float] = field(default_factory=dict)
    """GPU-seconds by queue."""
    evictions: list[tuple[str, str]] = field(default_factory=list)
    """Who took whose place, a job each."""
    communication: list[Compared] = field(default_factory=list)
    """Jobs that state their parallelism, where somebody had them compared."""
    rearrangements: list[Rearranged] = field(default_factory=list)
    decisions: int = 0
    node_faults: int = 0
