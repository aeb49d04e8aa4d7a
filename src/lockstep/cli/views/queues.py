"""Queues as rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lockstep.api.containers import Quantity
from lockstep.api.queue import Queue
from lockstep.cli.views.table import Column, Table, table
from lockstep.cli.views.times import ago

COLUMNS = (
    "Name",
    "Parent",
    Column("Weight", number=True),
    "Guaranteed",
    "Limit",
    "Used",
    Column("Waiting", number=True),
    Column("Placed", number=True),
    Column("Lending", wide=True),
    Column("Preemption", wide=True),
    "Ready",
    "Age",
    Column("Note", text=True),
)


def amounts(given: Mapping[str, Quantity]) -> str:
    """Return resources in one cell: ``cpu=8 gpu=16``."""
    return " ".join(f"{name.rpartition('/')[2]}={value}" for name, value in sorted(given.items()))


def queue_table(queues: Iterable[Queue], now: float) -> Table:
    """Return the queues as a table, by name."""
    return table(
        COLUMNS, (_row(queue, now) for queue in sorted(queues, key=lambda q: q.metadata.name))
    )


def _row(queue: Queue, now: float) -> tuple[object, ...]:
    spec, status = queue.spec, queue.status
    ready = next((one for one in status.conditions if one.type == "Ready"), None)
    return (
        queue.metadata.name,
        spec.parent,
        spec.weight,
        amounts(spec.guaranteed),
        amounts(spec.limit),
        amounts(status.used),
        status.pending,
        status.running,
        spec.lending,
        spec.preemption,
        ready.status if ready is not None else "",
        ago(queue.metadata.creation_timestamp, now),
        ready.message if ready is not None else "",
    )
