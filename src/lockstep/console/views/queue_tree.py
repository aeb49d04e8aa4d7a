"""Queues as a tree: what each is promised, uses, borrows and may have, in GPUs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from lockstep.api.names import GPU
from lockstep.api.quantity import parse
from lockstep.api.queue import Queue
from lockstep.api.wire import Json
from lockstep.console.views.picture import Picture, fields


def page(queues: Iterable[Queue], gpus: int) -> Picture:
    """Return all queues, each behind its parent; ``gpus`` are those of the cluster."""
    there = {queue.metadata.name: queue for queue in queues}
    rows = {name: row(there[name], depth) for name, depth in ordered(there)}
    return Picture({"gpus": gpus, "total": len(rows)}, list(rows), rows)


def ordered(there: Mapping[str, Queue]) -> Iterator[tuple[str, int]]:
    """Yield names with their depth; queues whose parents make a ring, or are gone, stand on top."""
    below: dict[str, list[str]] = {}
    for name in sorted(there):
        parent = there[name].spec.parent or ""
        below.setdefault(parent if parent in there else "", []).append(name)
    done: set[str] = set()

    def walk(name: str, depth: int) -> Iterator[tuple[str, int]]:
        if name not in done:
            done.add(name)
            yield name, depth
            for child in below.get(name, ()):
                yield from walk(child, depth + 1)

    for name in below.get("", ()):
        yield from walk(name, 0)
    for name in sorted(there):
        yield from walk(name, 0)


def row(queue: Queue, depth: int) -> Json:
    """Return a queue as a row."""
    spec, status = queue.spec, queue.status
    missing = next((c.message for c in status.conditions if c.status == "False" and c.message), "")
    return {
        "name": queue.metadata.name,
        "depth": depth,
        "parent": spec.parent or "",
        "guaranteed": gpus(spec.guaranteed),
        "limit": gpus(spec.limit),
        "borrowing": gpus(spec.borrowing_limit),
        "lending": spec.lending,
        "weight": spec.weight,
        "used": gpus(status.used) or 0,
        "borrowed": gpus(status.borrowed) or 0,
        **fields(status, "pending running share"),
        "why": missing,
        "version": queue.metadata.resource_version,
        "others": {name: str(v) for name, v in status.used.items() if not name.startswith(GPU)},
    }


def gpus(amounts: Mapping[str, Any]) -> float | None:
    """Return the GPUs of a set of amounts, those of single models included; None for none."""
    whole = amounts.get(GPU)
    if whole is not None:
        return _number(whole)
    models = [_number(v) for name, v in amounts.items() if name.startswith(f"{GPU}/")]
    return sum(models) if models else None


def _number(value: Any) -> float:
    try:
        return float(parse(str(value)))
    except ValueError:
        return 0.0
