"""Bills in the shape of OpenCost's ``/allocation``, for what reads those answers. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from lockstep.api import timestamp
from lockstep.api.wire import Json
from lockstep.insight.cost import billing
from lockstep.insight.cost.billing import Line
from lockstep.insight.cost.prices import HOUR, Prices
from lockstep.insight.history.records import Claim, NodeSpan

IDLE: Final = "__idle__"
ALL: Final = "__all__"
_IN_THE_NODE: Final = (
    "cpuCost",
    "ramCost",
    "pvCost",
    "networkCost",
    "loadBalancerCost",
    "sharedCost",
    "externalCost",
)
"""What costs nothing more: a node's whole price is divided by its GPUs."""
_PROPERTIES: Final[Mapping[str, Callable[[Claim], str]]] = {
    "namespace": lambda claim: claim.namespace,
    "node": lambda claim: claim.node,
    "pod": lambda claim: claim.pod,
    "controller": lambda claim: claim.job,
}
_LABELS: Final[Mapping[str, Callable[[Claim], str]]] = {
    "queue": lambda claim: claim.queue,
    "user": lambda claim: claim.user,
}


def allocations(
    nodes: Sequence[NodeSpan],
    claims: Sequence[Claim],
    prices: Prices,
    *,
    by: Sequence[str],
    start: float,
    end: float,
    sees: Callable[[str], bool] | None = None,
) -> Json:
    """Return the bill as OpenCost answers: one set for the period, or one a month *by* month.

    An allocation is named by the values of *by*, joined by ``/``. It bears the properties in which
    all of its claims agree. GPU time that no pod held is ``__idle__``. With *sees* only the
    namespaces that are seen are told.
    """
    groups = [one for one in billing.columns(by) if one != "month"]
    begins = [one.start for one in nodes] + [one.start for one in claims]
    data = []
    for first, last in _windows(max(start, min(begins, default=end)), end, "month" in by):
        here = [claim for claim in claims if claim.start < last and _until(claim, last) > first]
        found = billing.bill(nodes, here, prices, by=groups, start=first, end=last, sees=sees)
        members: dict[billing.Key, list[Claim]] = {}
        for claim in here:
            if sees is not None and not sees(claim.namespace):
                continue
            members.setdefault(billing.key_of(claim, "", groups), []).append(claim)
        entries = {}
        for key, line in sorted(found.lines.items()):
            name = _name(key)
            entries[name] = _entry(name, line, members[key], (first, last))
        if sees is None:
            entries[IDLE] = _entry(IDLE, found.free, [], (first, last))
        data.append(entries)
    return {"code": 200, "status": "success", "data": data}


def _name(key: billing.Key) -> str:
    """Return the values as one name; no two keys have the same, for any user's name."""
    parts = [one.replace("%", "%25").replace("/", "%2F") for one in key]
    text = "/".join(parts) or ALL
    return f"%5F{text[1:]}" if text == IDLE else text


def _windows(start: float, end: float, monthly: bool) -> Iterator[tuple[float, float]]:
    while start < end:
        stop = min(end, billing.month_end(start)) if monthly else end
        yield start, stop
        start = stop


def _entry(name: str, line: Line, members: Sequence[Claim], window: tuple[float, float]) -> Json:
    first = max(window[0], min((one.start for one in members), default=window[0]))
    last = max((_until(one, window[1]) for one in members), default=window[1])
    hours = (last - first) / HOUR
    return {
        "name": name,
        "properties": _properties(members),
        "window": {"start": timestamp.show(window[0]), "end": timestamp.show(window[1])},
        "start": timestamp.show(first),
        "end": timestamp.show(last),
        "minutes": round(hours * 60, 4),
        "gpuCount": round(line.gpu_hours / hours, 6) if hours else 0.0,
        "gpuHours": round(line.gpu_hours, 6),
        "gpuCost": round(line.cost, 6),
        **dict.fromkeys(_IN_THE_NODE, 0.0),
        "totalCost": round(line.cost, 6),
    }


def _properties(members: Sequence[Claim]) -> Json:
    found: Json = _agreed(_PROPERTIES, members)
    if "controller" in found:
        found["controllerKind"] = "trainingjob"
    labels = _agreed(_LABELS, members)
    return {**found, "labels": labels} if labels else found


def _agreed(
    fields: Mapping[str, Callable[[Claim], str]], members: Sequence[Claim]
) -> dict[str, str]:
    found = {name: {read(one) for one in members} for name, read in fields.items()}
    return {name: next(iter(v)) for name, v in found.items() if len(v) == 1 and v != {""}}


def _until(claim: Claim, last: float) -> float:
    return last if claim.end is None else min(claim.end, last)
