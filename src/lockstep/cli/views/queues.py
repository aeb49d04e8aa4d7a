"""Queues as rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lockstep.api.containers import Quantity
from lockstep.api.queue import Queue
from lockstep.cli.views.table import NAMED, Cells, Column, Table, age, place, rows


def amounts(given: Mapping[str, Quantity]) -> str:
    """Return resources in one cell: ``cpu=8 gpu=16``."""
    return " ".join(f"{name.rpartition('/')[2]}={value}" for name, value in sorted(given.items()))


def queue_table(queues: Iterable[Queue], now: float) -> Table:
    """Return the queues as a table, by name."""
    cells: Cells[Queue] = (
        NAMED,
        ("Parent", lambda one: one.spec.parent),
        (Column("Weight", number=True), lambda one: f"{one.spec.weight:g}"),
        ("Guaranteed", lambda one: amounts(one.spec.guaranteed)),
        ("Limit", lambda one: amounts(one.spec.limit)),
        ("Used", lambda one: amounts(one.status.used)),
        (Column("Waiting", number=True), lambda one: one.status.pending),
        (Column("Placed", number=True), lambda one: one.status.running),
        (Column("Lending", wide=True), lambda one: one.spec.lending),
        (Column("Preemption", wide=True), lambda one: one.spec.preemption),
        ("Ready", lambda one: _ready(one)[0]),
        age(now),
        (Column("Note", text=True), lambda one: _ready(one)[1]),
    )
    return rows(sorted(queues, key=place), cells)


def _ready(queue: Queue) -> tuple[str, str]:
    """Return whether a queue is ready, and its message; empty where no controller has said it."""
    found = ((one.status, one.message) for one in queue.status.conditions if one.type == "Ready")
    return next(found, ("", ""))
