"""Nodes as rows of a list, and what is told of the devices of one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from lockstep.api.device_usage import DeviceUsage
from lockstep.api.node_health import NodeHealth
from lockstep.api.wire import Json
from lockstep.console.views.cluster import NodeRow
from lockstep.console.views.picture import Picture, fields
from lockstep.console.views.query import Query


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
        **fields(one, "name state why"),
        "place": " / ".join(filter(None, one.at)),
        "gpus": one.gpus,
        "held": one.gpus - one.free,
        "use": None if found is None else round(found),
        "pods": len(one.pods),
        **fields(one, "model cordoned created"),
    }


def findings(health: NodeHealth | None) -> list[Json]:
    """Return what was found wrong with a node."""
    return [
        fields(
            one,
            "cause action device confidence evidence since last count",
            **{"class": "class_"},
        )
        for one in (health.spec.findings if health is not None else ())
    ]


def devices(usage: DeviceUsage | None) -> list[Json]:
    """Return what each GPU of a node does, as its agent last saw it."""
    return [
        fields(
            one,
            "index model memory memory_used power temperature trouble",
            use="utilization",
            sm="sm_active",
            tensor="tensor_active",
        )
        for one in (usage.gpus if usage is not None else ())
    ]
