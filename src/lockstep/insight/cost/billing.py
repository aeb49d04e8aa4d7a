"""Who owes what: the bill of every node, divided among those who held its GPUs. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from lockstep.api.usage_query import UsageLine, UsageQueryStatus
from lockstep.insight.cost.prices import HOUR, Prices
from lockstep.insight.history.records import FREE, Claim, NodeSpan
from lockstep.insight.history.timeline import Stretch, stray, stretches

Key = tuple[str, ...]
UNKNOWN: Final = "(unknown)"
"""Who created it was never told."""


@dataclass(slots=True)
class Line:
    """What one group used: GPU-hours by whole cards, and their cost."""

    gpu_hours: float = 0.0
    cost: float = 0.0
    unpriced_gpu_hours: float = 0.0
    """Of the GPU-hours those for which no price holds."""
    starting_gpu_hours: float = 0.0
    """Of the GPU-hours those before all containers of a pod ran."""

    def add(self, other: Line) -> None:
        """Add what *other* has."""
        self.gpu_hours += other.gpu_hours
        self.cost += other.cost
        self.unpriced_gpu_hours += other.unpriced_gpu_hours
        self.starting_gpu_hours += other.starting_gpu_hours


def added(lines: Iterable[Line]) -> Line:
    """Return the sum of *lines*."""
    found = Line()
    for one in lines:
        found.add(one)
    return found


def read_line(told: UsageLine | None) -> Line:
    """Return a line of the recorder's answer as it is counted here."""
    if told is None:
        return Line()
    return Line(told.gpu_hours, told.cost, told.unpriced_gpu_hours, told.starting_gpu_hours)


@dataclass(frozen=True, slots=True)
class Bill:
    """Lines by group, what was idle, and what no node on record had."""

    currency: str
    lines: dict[Key, Line]
    free: Line
    stray_gpu_hours: float

    @property
    def total(self) -> Line:
        """Return the sum of all lines and of what was free: the bill of the nodes."""
        return added([*self.lines.values(), self.free])


def read_bill(answers: Sequence[UsageQueryStatus]) -> Bill:
    """Return the recorder's answers, one for each namespace, as one bill."""
    first = answers[0]
    found = Bill(first.currency, {}, read_line(first.free), sum(a.stray_gpu_hours for a in answers))
    for line in (line for one in answers for line in one.lines):
        found.lines.setdefault(tuple(line.key), Line()).add(read_line(line))
    return found


def month_of(seconds: float) -> str:
    """Return the month of a Unix time, in UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m")


def month_start(seconds: float) -> float:
    """Return when the month of a Unix time began, in UTC."""
    there = datetime.fromtimestamp(seconds, UTC)
    return datetime(there.year, there.month, 1, tzinfo=UTC).timestamp()


def month_end(seconds: float) -> float:
    """Return when the month of a Unix time ends, in UTC."""
    there = datetime.fromtimestamp(seconds, UTC)
    year, month = divmod(there.year * 12 + there.month, 12)
    return datetime(year, month + 1, 1, tzinfo=UTC).timestamp()


GROUPS: Final[dict[str, Callable[[Claim], str]]] = {
    "job": lambda claim: claim.job,
    "pod": lambda claim: claim.pod,
    "namespace": lambda claim: claim.namespace,
    "queue": lambda claim: claim.queue,
    "user": lambda claim: claim.user or UNKNOWN,
    "purpose": lambda claim: claim.purpose,
}
"""By what usage is summed up, beside ``month``."""


def bill(
    nodes: Sequence[NodeSpan],
    claims: Sequence[Claim],
    prices: Prices,
    *,
    by: Sequence[str],
    start: float,
    end: float,
    sees: Callable[[str], bool] | None = None,
) -> Bill:
    """Return the bill of *nodes* within *start* and *end*, divided *by* some of ``GROUPS``.

    A job is told by its namespace, too. What is open lasts until *end*. With *sees* it is the bill
    of the namespaces that are seen: what others hold has no line, and free time is not told.
    """
    lines: dict[Key, Line] = defaultdict(Line)
    free = Line()
    for stretch in stretches(nodes, claims, start, end):
        for begin, stop, month in _months(stretch, by):
            for first, last, rate in prices.rates(stretch.node, begin, stop):
                hours = (last - first) / HOUR
                for claim, part in stretch.holders:
                    if sees is not None and not sees(claim.namespace):
                        continue
                    line = lines[key_of(claim, month, by)]
                    _add(line, hours * part, rate)
                    if claim.purpose == "starting":
                        line.starting_gpu_hours += hours * part
                _add(free, hours * stretch.free, rate)
    if sees is not None:
        return Bill(prices.currency, dict(lines), Line(), 0.0)
    return Bill(prices.currency, dict(lines), free, stray(nodes, claims, start, end) / HOUR)


def _add(line: Line, gpu_hours: float, rate: float | None) -> None:
    line.gpu_hours += gpu_hours
    if rate is None:
        line.unpriced_gpu_hours += gpu_hours
    else:
        line.cost += gpu_hours * rate


def _months(stretch: Stretch, by: Iterable[str]) -> Iterable[tuple[float, float, str]]:
    if "month" not in by:
        return [(stretch.start, stretch.end, "")]
    found, begin = [], stretch.start
    while begin < stretch.end:
        stop = min(stretch.end, month_end(begin))
        found.append((begin, stop, month_of(begin)))
        begin = stop
    return found


def key_of(claim: Claim, month: str, by: Sequence[str]) -> Key:
    """Return the line that *claim* belongs to in a bill divided *by* these groups."""
    return tuple(month if one == "month" else GROUPS[one](claim) for one in columns(by))


def columns(by: Sequence[str]) -> list[str]:
    """Return what tells the lines apart: a job's name alone does not."""
    if "job" in by and "namespace" not in by:
        at = list(by).index("job")
        return [*by[:at], "namespace", *by[at:]]
    return list(by)


FREE_NAME: Final = f"({FREE})"
"""How the line of idle devices is named."""
