"""What a queue holds, what it may have, and what waits in it and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lockstep.api.containers import Quantity
from lockstep.api.gang import Gang
from lockstep.api.queue import Queue
from lockstep.cli.views import gangs
from lockstep.cli.views.table import cell
from lockstep.cli.views.times import ago

SHOWN = 20
"""Waiting gangs that are named; the others are counted."""


def explain_queue(
    queue: Queue, queues: Sequence[Queue], members: Sequence[Gang], now: float
) -> list[str]:
    """Return where the queue stands, and why what waits in it waits."""
    spec, status, name = queue.spec, queue.status, queue.metadata.name
    of = f", part of {spec.parent}" if spec.parent else ""
    lines = [
        f"queue {name}{of}: "
        f"{_counted(status.running, 'gang', 'run')}, {status.pending} "
        f"{'waits' if status.pending == 1 else 'wait'}"
    ]
    resources = sorted({*status.used, *spec.guaranteed, *spec.limit})
    lines += [f"  {one}: {_amounts(one, queue)}" for one in resources]
    if status.share:
        lines.append(f"  share above its guarantee, for weight {spec.weight:g}: {status.share}")
    lines += _rivals(queue, queues)
    lines += [
        f"  note: {cell(c.message)}" for c in status.conditions if c.type == "Ready" and c.message
    ]
    return [*lines, *_waiting(_below(name, queues), members, now)]


def _counted(number: int, one: str, does: str) -> str:
    return f"{number} {one} {does}s" if number == 1 else f"{number} {one}s {does}"


def _amounts(resource: str, queue: Queue) -> str:
    spec, status = queue.spec, queue.status
    parts = [f"{status.used.get(resource, 0)} used"]
    for label, amounts in (
        ("guaranteed", spec.guaranteed),
        ("borrowed", status.borrowed),
        ("limit", spec.limit),
        ("may borrow", spec.borrowing_limit),
    ):
        if resource in amounts:
            parts.append(f"{_of(amounts, resource)} {label}")
    return ", ".join(parts)


def _of(amounts: Mapping[str, Quantity], resource: str) -> str:
    return str(amounts[resource])


def _rivals(queue: Queue, queues: Sequence[Queue]) -> list[str]:
    """Say which queues beside it wait too, the one that is served next first."""
    beside = [q for q in queues if q.spec.parent == queue.spec.parent and q.status.pending]
    if len(beside) < 2 or queue.metadata.name not in {q.metadata.name for q in beside}:
        return []
    ranked = sorted(beside, key=lambda q: (float(q.status.share.rstrip("%") or 0), q.metadata.name))
    shares = ", ".join(f"{q.metadata.name} {q.status.share or '0.0%'}" for q in ranked)
    return [f"  sibling queues with waiting gangs, smallest share first: {shares}"]


def _below(name: str, queues: Sequence[Queue]) -> set[str]:
    """Return the queue's name and those of all its parts."""
    found, grown = {name}, True
    while grown:
        more = {q.metadata.name for q in queues if q.spec.parent in found} - found
        found, grown = found | more, bool(more)
    return found


def _waiting(names: set[str], members: Sequence[Gang], now: float) -> list[str]:
    waiting = [g for g in members if g.spec.queue in names and gangs.waits(g)]
    waiting.sort(key=lambda g: (g.spec.queue, g.status.position or 0, g.metadata.name))
    lines = []
    for gang in waiting[:SHOWN]:
        meta, status = gang.metadata, gang.status
        since = ago(status.waiting_since or meta.creation_timestamp, now)
        place = f"{status.position}. " if status.position else ""
        start = gangs.starts(gang, now)
        when = f", starts {start if start == 'now' else f'in {start}'}" if start else ""
        name = f"{meta.namespace}/{meta.name}"
        lines.append(f"  {place}{name}, since {since}{when}: {gangs.why(gang)}")
    if len(waiting) > SHOWN:
        lines.append(f"  and {len(waiting) - SHOWN} more")
    return lines
