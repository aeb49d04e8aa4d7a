"""What is kept for a workload that does not fit: when and where it starts, how much of it now."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from lockstep.scheduler.core.model.node_table import natural
from lockstep.scheduler.core.model.workload import Workload, WorkloadKey
from lockstep.scheduler.core.util.array_types import IntArray

Turn = tuple[str, str, tuple[tuple[int, int | str], ...]]


@dataclass(slots=True)
class Reservation:
    """When and where a waiting workload is to start at the latest, as far as is known."""

    workload: WorkloadKey
    at: float
    """Unix time, in whole seconds: that is what is promised where it can be read."""
    queue: str
    priority: int
    turn: Turn
    """Age and name: what orders workloads of one priority in one queue."""
    place: dict[str, str]
    """By pod, its node."""
    wanted: dict[str, IntArray]
    """By node, what the workload takes there: an amount for each column of the table. Nothing
    where no room is kept, but quota alone."""
    asked: dict[str, int]
    """What the workload counts for on its place: an amount for each resource of accounts."""
    until: float
    """Unix time at which the workload will have ended that starts so; infinity where
    that is not known."""
    kept: dict[str, tuple[IntArray, IntArray]] = field(default_factory=dict)
    """By node where anything is kept free now: the columns of the table, and how much of each."""

    given: dict[str, dict[str, int]] = field(default_factory=dict)
    """By account whose ceilings count for it, what is given back of them in time."""

    def same_amounts(self, other: Reservation) -> bool:
        """Return whether as much is wanted of each node; columns that came since do not count."""
        return self.wanted.keys() == other.wanted.keys() and all(
            np.array_equal(_trimmed(mine), _trimmed(other.wanted[node]))
            for node, mine in self.wanted.items()
        )


@dataclass(slots=True)
class Reservations:
    """The book of reservations: one of room and quota at most, and by queue one of quota alone."""

    room: Reservation | None = None
    quota: dict[str, Reservation] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return self.room is not None or bool(self.quota)

    def __iter__(self) -> Iterator[Reservation]:
        if self.room is not None:
            yield self.room
        yield from self.quota.values()

    def of(self, key: WorkloadKey) -> Reservation | None:
        """Return the reservation of a workload."""
        return next((held for held in self if held.workload == key), None)

    def add(self, held: Reservation) -> None:
        """Enter a reservation, instead of the one of room or of its queue's quota that there is."""
        if held.wanted:
            self.room = held
        else:
            self.quota[held.queue] = held

    def remove(self, held: Reservation) -> None:
        """Strike out a reservation that is in the book."""
        if held.wanted:
            self.room = None
        else:
            del self.quota[held.queue]


def turn_of(workload: Workload) -> Turn:
    """Return what orders a workload among those of its priority and queue."""
    return workload.queued_at, workload.key.namespace, natural(workload.key.name)


def _trimmed(amounts: IntArray) -> IntArray:
    return np.trim_zeros(amounts, "b")
