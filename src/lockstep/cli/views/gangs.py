"""Gangs as rows."""

from __future__ import annotations

from collections.abc import Iterable

from lockstep.api.gang import Gang, TopologyWish
from lockstep.api.names import SIMULATED_LABEL
from lockstep.cli.views.pods import marked
from lockstep.cli.views.table import IN_NAMESPACE, NAMED, Cells, Column, Table, age, rows
from lockstep.cli.views.times import until


def minimum(gang: Gang) -> int:
    """Return how many members the gang cannot start without."""
    if gang.spec.groups:
        return sum(group.min for group in gang.spec.groups)
    return gang.spec.min_member or 0


def phase(gang: Gang) -> str:
    """Return the gang's phase, marked where its pods' commands are not executed."""
    simulated = gang.metadata.labels.get(SIMULATED_LABEL) == "true"
    return marked(gang.status.phase, simulated=simulated)


def waits(gang: Gang) -> bool:
    """Return whether the gang has no place yet."""
    return gang.status.phase in ("Pending", "Placing")


def why(gang: Gang) -> str:
    """Return why the gang waits, or why it waits no more; empty when it has its place."""
    if gang.status.phase == "Failed":
        return gang.status.message
    if not waits(gang):
        return ""
    return gang.status.message or gang.status.reason or "not looked at yet"


def starts(gang: Gang, now: float) -> str:
    """Return in how long the gang is to start, as far as is known.

    That is ``5m20s`` or ``now``, ``not before 1h`` where no more can be told, or empty.
    """
    status = gang.status
    if not waits(gang):
        return ""
    if status.estimated_start is not None:
        return until(status.estimated_start, now)
    return f"not before {until(status.not_before, now)}" if status.not_before is not None else ""


def wish(topology: TopologyWish | None) -> str:
    """Return a topology wish in one word: ``leaf``, or ``leaf?`` where it is only preferred."""
    if topology is None:
        return ""
    if topology.required:
        return topology.required
    return f"{topology.preferred}?" if topology.preferred else ""


def domain(gang: Gang) -> str:
    """Return where the gang is, widest tier first: ``spine-0/leaf-3``."""
    return "/".join(gang.status.domain.values())


def gang_table(gangs: Iterable[Gang], now: float) -> Table:
    """Return the gangs as a table, those that wait in their order after those that run."""
    cells: Cells[Gang] = (
        IN_NAMESPACE,
        NAMED,
        ("Phase", phase),
        (Column("Bound", number=True), lambda one: f"{one.status.bound}/{minimum(one)}"),
        (Column("Running", number=True, wide=True), lambda one: one.status.running),
        ("Queue", lambda one: one.spec.queue),
        (Column("Priority", wide=True), lambda one: one.spec.priority_class_name),
        (Column("Topology", wide=True), lambda one: wish(one.spec.topology)),
        ("Domain", domain),
        (
            Column("Position", number=True, wide=True),
            lambda one: one.status.position if waits(one) else None,
        ),
        (Column("Starts in", wide=True), lambda one: starts(one, now)),
        age(now),
        (Column("Why", text=True), why),
    )
    return rows(sorted(gangs, key=_order), cells)


def _order(gang: Gang) -> tuple[bool, int, str, str]:
    meta = gang.metadata
    return (waits(gang), gang.status.position or 0, meta.creation_timestamp or "", meta.name)
