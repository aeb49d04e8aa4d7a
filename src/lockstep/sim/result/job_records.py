"""How the jobs of a simulation fared."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import isnan, nan
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lockstep.sim.input.jobs import Job
from lockstep.sim.result.columns import Distinct, Rows, Texts

_ROW = np.dtype(
    [
        ("queue", "u4"),
        ("arrival", "f8"),
        ("runtime", "f8"),
        ("gpus", "f8"),
        ("started", "f8"),
        ("paid", "f8"),
        ("shape", "i4"),
        ("ended", "f8"),
        ("restarts", "u4"),
        ("preemptions", "u4"),
        ("moves", "u4"),
        ("useful", "f8"),
        ("lost", "f8"),
    ]
)


class Paid(NamedTuple):
    """What a job that states its parallelism paid where it first stood."""

    seconds: float
    """Communication a step, averaged over its ranks, without overlap."""
    shape: int
    """The number of what stood there, among all `Shapes`."""


@dataclass(slots=True)
class JobRecord:
    """How one job fared; times in seconds after the start."""

    number: int
    """Jobs are numbered as they arrive."""
    name: str
    queue: str
    arrival: float
    runtime: float | None
    """None: for ever."""
    gpus: float
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
    """Why it waits, when it waits at the end or gave up."""
    gave_up: float | None = None
    """When it had waited for as long as it may (maxWait)."""


class JobRecords:
    """The lives of all jobs; of one that has ended, a row of numbers is left."""

    def __init__(self) -> None:
        self.names = Texts()
        """The names of the jobs by their numbers."""
        self._queues = Distinct[str]()
        self._rows = Rows(_ROW)
        self._open: dict[int, JobRecord] = {}

    def begin(self, work: Job) -> JobRecord:
        """Return the life of a job that arrives."""
        life = JobRecord(
            self.names.add(work.name), work.name, work.queue, work.arrival, work.runtime, work.gpus
        )
        self._rows.add(self._row(life))
        self._open[life.number] = life
        return life

    def end(self, life: JobRecord) -> None:
        """Keep nothing but the row of a job that waits for nothing more."""
        self._rows[life.number] = self._row(life)
        del self._open[life.number]

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[JobRecord]:
        return map(self.__getitem__, range(len(self)))

    def __getitem__(self, number: int) -> JobRecord:
        found = self._open.get(number)
        return found if found is not None else self._read(number)

    @property
    def waiting(self) -> list[JobRecord]:
        """Return those that waited at the end or gave up, in the order of their arrival."""
        return [life for life in self._open.values() if life.waiting]

    @property
    def queues(self) -> list[str]:
        """Return the names of the queues by their numbers."""
        return self._queues.values

    def column(self, field: str) -> NDArray[Any]:
        """Return a field of all lives: queues by their numbers, NaN where there is no value."""
        for life in self._open.values():
            self._rows[life.number] = self._row(life)
        return self._rows.column(field)

    def _row(self, life: JobRecord) -> tuple[float, ...]:
        seconds, shape = life.paid or (nan, -1)
        return (
            self._queues.number(life.queue),
            life.arrival,
            _number(life.runtime),
            life.gpus,
            _number(life.started),
            seconds,
            shape,
            _number(life.ended),
            life.restarts,
            life.preemptions,
            life.moves,
            life.useful,
            life.lost,
        )

    def _read(self, number: int) -> JobRecord:
        queue, arrival, runtime, gpus, started, paid, shape, ended, *rest = self._rows[number]
        return JobRecord(
            number,
            self.names[number],
            self._queues.values[queue],
            arrival,
            _value(runtime),
            gpus,
            _value(started),
            None if isnan(paid) else Paid(paid, shape),
            _value(ended),
            *rest,
        )


def _number(value: float | None) -> float:
    return nan if value is None else value


def _value(number: float) -> float | None:
    return None if isnan(number) else number
