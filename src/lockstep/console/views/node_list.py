"""Nodes as rows of a list, and what is told of the devices of one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from lockstep.api.device_usage import DeviceUsage
from lockstep.api.node_health import NodeHealth
from lockstep.console.views.cluster import NodeRow
from lockstep.console.views.picture import Picture
from lockstep.console.views.query import Query

Json = dict[str, Any]


def utilisation(one: NodeRow) -> float | None:
    """Return the mean use of the GPUs that are measured, in percent."""
    seen = [value for value in one.use if value is not None]
    return sum(seen) / len(seen) if seen else None


COLUMNS: Final[dict[str, Callable[[NodeRow], Any]]] = {
    "name": lambda one: one.name,
    "state": lambda one: one.state,
    "place": lambda one: one.at,
    "gpus": lambda one: one.gpus,
    "held": lambda one: one.gpus - one.free,
    "use": lambda one: -1.0 if (found := utilisation(one)) is None else found,
    "pods": lambda one: len(one.pods),
    "model": lambda one: one.model,
    "created": lambda one: one.created,
}
"""By what a list can be sorted."""


def matching(rows: Iterable[NodeRow], query: Query) -> Iterator[NodeRow]:
    """Yield the nodes whose name, place, model or state hold the words of a query."""
    for one in rows:
        if not query.search or any(
            query.search in text.lower() for text in (one.name, one.model, one.why, *one.at)
        ):
            yield one


def page(rows: Iterable[NodeRow], query: Query) -> Picture:
    """Return one page; ``facts`` count what matches, in all and by state."""
    found = list(matching(rows, query))
    states = Counter(one.state for one in found)
    kept = [one for one in found if not query.phases or one.state in query.phases]
    kept.sort(key=lambda one: (COLUMNS[query.sort](one), one.name), reverse=query.descending)
    shown = kept[query.offset : query.offset + query.limit]
    facts = {"total": len(kept), "states": dict(sorted(states.items()))}
    return Picture(facts, [one.name for one in shown], {one.name: row(one) for one in shown})


def row(one: NodeRow) -> Json:
    """Return a node as a row of the list."""
    found = utilisation(one)
    return {
        "name": one.name,
        "state": one.state,
        "why": one.why,
        "place": " / ".join(filter(None, one.at)),
        "gpus": one.gpus,
        "held": one.gpus - one.free,
        "use": None if found is None else round(found),
        "pods": len(one.pods),
        "model": one.model,
        "cordoned": one.cordoned,
        "created": one.created,
    }


def findings(health: NodeHealth | None) -> list[Json]:
    """Return what was found wrong with a node."""
    return [
        {
            "cause": one.cause,
            "class": one.class_,
            "action": one.action,
            "device": one.device,
            "confidence": one.confidence,
            "evidence": one.evidence,
            "since": one.since,
            "last": one.last,
            "count": one.count,
        }
        for one in (health.spec.findings if health is not None else ())
    ]


def devices(usage: DeviceUsage | None) -> list[Json]:
    """Return what each GPU of a node does, as its agent last saw it."""
    return [
        {
            "index": one.index,
            "model": one.model,
            "use": one.utilization,
            "sm": one.sm_active,
            "tensor": one.tensor_active,
            "memory": one.memory,
            "memoryUsed": one.memory_used,
            "power": one.power,
            "temperature": one.temperature,
            "trouble": one.trouble,
        }
        for one in (usage.gpus if usage is not None else ())
    ]
