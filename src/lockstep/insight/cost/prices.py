"""Prices as nodes meet them: which holds for a node at a time. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from lockstep.api import timestamp
from lockstep.api.price_list import Budget, Price, PriceList
from lockstep.insight.history.records import NodeSpan

HOUR = 3600.0
ALWAYS = float("-inf")


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with price lists: where, what was given, and what is allowed instead."""

    field: str
    given: object
    allowed: str

    def __str__(self) -> str:
        return f"{self.field}: given {self.given!r}; {self.allowed}"


@dataclass(frozen=True, slots=True)
class Entry:
    """A price, and since when it holds (Unix seconds)."""

    price: Price
    since: float

    def per_gpu_hour(self, node: NodeSpan) -> float:
        """Return what one GPU of *node* costs an hour."""
        if self.price.gpu_hour is not None:
            return self.price.gpu_hour
        return (self.price.node_hour or 0.0) / node.gpus

    def fits(self, node: NodeSpan) -> bool:
        """Tell whether it is a price of *node*."""
        return self.price.spot == node.spot and _matches(self.price.selector, node.labels)


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices without contradiction, in one currency; empty where there are none."""

    currency: str = ""
    entries: tuple[Entry, ...] = ()
    budgets: tuple[Budget, ...] = ()

    def rates(
        self, node: NodeSpan, start: float, end: float
    ) -> Iterator[tuple[float, float, float | None]]:
        """Return what a GPU of *node* costs an hour within *start* and *end*, in pieces.

        A piece is a start, an end and a rate, None where no price holds.
        """
        fitting = [one for one in self.entries if one.fits(node)]
        cuts = sorted({start, end, *(one.since for one in fitting if start < one.since < end)})
        for begin, stop in pairwise(cuts):
            holds = [one for one in fitting if one.since <= begin]
            best = max(holds, key=lambda o: (len(o.price.selector), o.since), default=None)
            yield begin, stop, None if best is None else best.per_gpu_hour(node)


def _matches(selector: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    return all(labels.get(key) == value for key, value in selector.items())


def read(lists: Sequence[PriceList]) -> tuple[Prices, list[Problem]]:
    """Return the prices of all *lists*, and what is wrong with them, by field."""
    found: list[Problem] = []
    entries: list[tuple[str, Entry]] = []
    currency = lists[0].spec.currency if lists else ""
    for one in lists:
        at = f"{one.metadata.name or 'PriceList'}: spec"
        if one.spec.currency != currency:
            first = lists[0].metadata.name
            allowed = f"must be {currency}, as in {first}: amounts cannot be added up otherwise"
            found.append(Problem(f"{at}.currency", one.spec.currency, allowed))
        for i, price in enumerate(one.spec.prices):
            where = f"{at}.prices[{i}]"
            found += _wrong(price, where)
            since = timestamp.read(price.valid_from) if price.valid_from else ALWAYS
            if since is None:
                allowed = "must be a time with its zone, such as 2026-01-31T00:00:00Z"
                found.append(Problem(f"{where}.validFrom", price.valid_from, allowed))
                continue
            entries.append((where, Entry(price, since)))
    found += _overlaps(entries)
    budgets = [
        (f"{one.metadata.name or 'PriceList'}: spec.budgets[{i}]", budget)
        for one in lists
        for i, budget in enumerate(one.spec.budgets)
    ]
    found += _wrong_budgets(budgets)
    known = tuple(entry for _, entry in entries)
    return Prices(currency, known, tuple(one for _, one in budgets)), found


def _wrong_budgets(budgets: Sequence[tuple[str, Budget]]) -> Iterator[Problem]:
    there: dict[tuple[str, str, str], str] = {}
    for where, one in budgets:
        if not 0 < one.month < float("inf"):
            yield Problem(f"{where}.month", one.month, "must be a number of more than 0")
        subject = (one.queue, one.namespace, one.user)
        if sum(map(bool, subject)) > 1:
            given = dict(zip(("queue", "namespace", "user"), subject, strict=True))
            yield Problem(where, given, "must set at most one of queue, namespace and user")
        if subject in there:
            yield Problem(where, one.month, f"is for the same as {there[subject]}: keep one")
        there.setdefault(subject, where)


def _wrong(price: Price, where: str) -> Iterator[Problem]:
    given = {"nodeHour": price.node_hour, "gpuHour": price.gpu_hour}
    for field, amount in given.items():
        # NaN is below nothing and above nothing.
        if amount is not None and not 0 <= amount < float("inf"):
            yield Problem(f"{where}.{field}", amount, "must be a number of at least 0")
    if (price.node_hour is None) == (price.gpu_hour is None):
        yield Problem(where, given, "must set exactly one of nodeHour and gpuHour")


def _overlaps(entries: Sequence[tuple[str, Entry]]) -> Iterator[Problem]:
    """Two prices of equally many labels that one node could bear both are no price."""
    alike: dict[tuple[bool, float, int], list[tuple[str, Entry]]] = {}
    for where, entry in entries:
        key = (entry.price.spot, entry.since, len(entry.price.selector))
        for other, rival in alike.setdefault(key, []):
            if _compatible(entry.price.selector, rival.price.selector):
                shown = dict(entry.price.selector)
                yield Problem(
                    f"{where}.selector",
                    shown,
                    f"overlaps {other}: a node can bear both; change validFrom or name more labels",
                )
                break
        alike[key].append((where, entry))


def _compatible(one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    return all(other.get(key, value) == value for key, value in one.items())
