"""A month's GPU time by what it went into, from the records. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from lockstep.api import timestamp
from lockstep.insight.cost import billing
from lockstep.insight.cost.budgets import Standing, standings
from lockstep.insight.cost.prices import HOUR, Prices
from lockstep.insight.history.records import FREE, Claim, NodeSpan
from lockstep.insight.history.timeline import Stretch, stray, stretches

DAY: Final = 24 * HOUR
STARTING: Final = "starting"
REST: Final = "rest of shared cards"
ADVISED: Final = "slow steps"
JobName = tuple[str, str]
"""Namespace and name."""


@dataclass(slots=True)
class Amount:
    """GPU-hours by whole cards, and what they cost."""

    gpu_hours: float = 0.0
    cost: float = 0.0

    def add(self, gpu_hours: float, cost: float) -> None:
        """Add that much."""
        self.gpu_hours += gpu_hours
        self.cost += cost

    def part(self, of: float) -> Amount:
        """Return the part *of* it, in 0..1."""
        return Amount(self.gpu_hours * of, self.cost * of)


@dataclass(frozen=True, slots=True)
class Finding:
    """What ``lockstep advise`` last said of a job: the part of its steps that would go."""

    cause: str
    gain: float


@dataclass(slots=True)
class JobUse:
    """What one job used, and whose it was."""

    queue: str = ""
    user: str = ""
    starting: Amount = field(default_factory=Amount)
    running: Amount = field(default_factory=Amount)

    @property
    def held(self) -> Amount:
        """Return all that it held."""
        one, other = self.starting, self.running
        return Amount(one.gpu_hours + other.gpu_hours, one.cost + other.cost)


@dataclass(slots=True)
class NodeUse:
    """What a node had, and what of it no gang held."""

    all: Amount = field(default_factory=Amount)
    free: Amount = field(default_factory=Amount)
    """Whole cards that no gang held."""
    rest: Amount = field(default_factory=Amount)
    """Of cards that some gang held in part, what was left."""


@dataclass(frozen=True, slots=True)
class Waste:
    """GPU time that trained nothing: what kind, and whose (a job, or a node)."""

    kind: str
    amount: Amount
    node: str = ""
    job: JobName = ("", "")
    cause: str = ""
    queue: str = ""
    user: str = ""


@dataclass(slots=True)
class Report:
    """One month: ``end`` lies before the month's own where that has not ended."""

    month: str
    start: float
    end: float
    currency: str
    jobs: dict[JobName, JobUse] = field(default_factory=lambda: defaultdict(JobUse))
    nodes: dict[str, NodeUse] = field(default_factory=lambda: defaultdict(NodeUse))
    days: dict[str, Amount] = field(default_factory=lambda: defaultdict(Amount))
    """What gangs held, by day (UTC)."""
    capacity: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    """GPU-hours that there were, by day."""
    findings: Mapping[JobName, Finding] = field(default_factory=dict)
    budgets: list[Standing] = field(default_factory=list)
    spot_saved: float = 0.0
    """What spot nodes cost less than the same nodes' other price, before work lost with them."""
    unpriced_gpu_hours: float = 0.0
    stray_gpu_hours: float = 0.0

    @property
    def total(self) -> Amount:
        """Return all GPU time that there was."""
        return _sum([one.all for one in self.nodes.values()])

    @property
    def held(self) -> Amount:
        """Return what gangs held of it."""
        return _sum([one.held for one in self.jobs.values()])

    @property
    def running(self) -> Amount:
        """Return what they held while all containers ran."""
        return _sum([one.running for one in self.jobs.values()])

    @property
    def slowed(self) -> Amount:
        """Return what of ``running`` the causes took that advice has named."""
        parts = [
            self.jobs[j].running.part(f.gain) for j, f in self.findings.items() if j in self.jobs
        ]
        return _sum(parts)

    @property
    def utilisation(self) -> float | None:
        """Return the part of all GPU time that gangs held; None where there were no GPUs."""
        return _ratio(self.held.gpu_hours, self.total.gpu_hours)

    @property
    def goodput(self) -> float | None:
        """Return the part of it in which steps could be made at their best speed known."""
        good = self.running.gpu_hours - self.slowed.gpu_hours
        return _ratio(good, self.total.gpu_hours)


def report(
    nodes: Sequence[NodeSpan],
    claims: Sequence[Claim],
    prices: Prices,
    *,
    start: float,
    end: float,
    findings: Mapping[JobName, Finding] | None = None,
) -> Report:
    """Return what the GPU time within *start* and *end* went into; *start* begins a month."""
    found = Report(billing.month_of(start), start, end, prices.currency, findings=findings or {})
    for stretch in stretches(nodes, claims, start, end):
        for begin, stop in _days(stretch):
            day = timestamp.show(begin)[:10]
            for first, last, rate in prices.rates(stretch.node, begin, stop):
                hours = (last - first) / HOUR
                _count(found, stretch, day, hours, rate)
            found.spot_saved += _saved(stretch.node, prices, begin, stop)
    found.stray_gpu_hours = stray(nodes, claims, start, end) / HOUR
    found.budgets = standings(nodes, claims, prices, end=end)
    return found


def wastes(found: Report) -> list[Waste]:
    """Return what was wasted, by whom, the dearest first."""
    league = []
    for name, node in found.nodes.items():
        league += [Waste(FREE, node.free, name), Waste(REST, node.rest, name)]
    for job, use in found.jobs.items():
        whose = {"job": job, "queue": use.queue, "user": use.user}
        league.append(Waste(STARTING, use.starting, **whose))  # type: ignore[arg-type]
        if job in found.findings:
            told = found.findings[job]
            lost = use.running.part(told.gain)
            league.append(Waste(ADVISED, lost, cause=told.cause, **whose))  # type: ignore[arg-type]
    league = [one for one in league if one.amount.gpu_hours > 0.005]
    return sorted(
        league, key=lambda w: (-w.amount.cost, -w.amount.gpu_hours, w.kind, w.node, w.job)
    )


def _count(found: Report, stretch: Stretch, day: str, hours: float, rate: float | None) -> None:
    price = rate or 0.0
    node = found.nodes[stretch.node.name]
    node.all.add(hours, hours * price)
    left = node.rest if stretch.holders else node.free
    left.add(hours * stretch.free, hours * stretch.free * price)
    found.capacity[day] += hours
    if rate is None:
        found.unpriced_gpu_hours += hours
    for claim, part in stretch.holders:
        use = found.jobs[claim.namespace, claim.job]
        use.queue, use.user = claim.queue, claim.user or use.user
        kept = use.starting if claim.purpose == STARTING else use.running
        kept.add(hours * part, hours * part * price)
        found.days[day].add(hours * part, hours * part * price)


def _saved(node: NodeSpan, prices: Prices, start: float, end: float) -> float:
    """Return what one GPU of *node* cost less for being spot; 0 where either price is unknown."""
    if not node.spot:
        return 0.0
    paid = _cost(node, prices, start, end)
    dearer = _cost(replace(node, spot=False), prices, start, end)
    return 0.0 if paid is None or dearer is None else dearer - paid


def _cost(node: NodeSpan, prices: Prices, start: float, end: float) -> float | None:
    total = 0.0
    for first, last, rate in prices.rates(node, start, end):
        if rate is None:
            return None
        total += rate * (last - first) / HOUR
    return total


def _days(stretch: Stretch) -> Iterator[tuple[float, float]]:
    begin = stretch.start
    while begin < stretch.end:
        stop = min(stretch.end, (begin // DAY + 1) * DAY)
        yield begin, stop
        begin = stop


def _sum(amounts: Sequence[Amount]) -> Amount:
    return Amount(sum(one.gpu_hours for one in amounts), sum(one.cost for one in amounts))


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole > 0 else None
