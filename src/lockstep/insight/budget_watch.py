"""Budgets in the controllers' metrics: counted again every few minutes from the records."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from lockstep.api.price_list import PriceList
from lockstep.api.team import Team
from lockstep.insight.cost import billing, prices
from lockstep.insight.cost.budgets import Standing, standings
from lockstep.insight.cost.prices import Prices
from lockstep.insight.history.store import Store

log = logging.getLogger(__name__)

SECONDS: Final = 300.0
"""How often budgets are counted."""
_LABELS: Final = ("kind", "name")


class BudgetWatch(Collector):
    """What of each budget is spent this month, as far as was counted last."""

    def __init__(
        self,
        lists: Iterable[PriceList],
        store: Store,
        clock: Callable[[], float] = time.time,
        teams: Iterable[Team] = (),
    ) -> None:
        self.standings: Sequence[Standing] = ()
        self.counted = False
        """Whether they were counted since the start."""
        self._lists, self._store, self._clock = lists, store, clock
        self._teams = teams

    def describe(self) -> Iterable[GaugeMetricFamily]:
        """Return the metrics without values."""
        return _families()

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the metrics as they were counted last."""
        spent, warned = _families()
        for one in self.standings:
            kind, _, name = one.subject.partition(" ")
            labels = (kind, name) if any(_named(one)) else ("cluster", "")
            spent.add_metric(labels, one.ratio)
            warned.add_metric(labels, one.budget.warn_at)
        yield from (spent, warned)

    async def watch(self) -> None:
        """Count from now on, again and again."""
        while True:
            try:
                await self.count()
            except sqlite3.Error as error:
                log.error("budgets cannot be counted: %s", error)
            await asyncio.sleep(SECONDS)

    async def count(self) -> None:
        """Count what is spent; nothing is told where price lists contradict each other.

        Raises:
            sqlite3.Error: when the records cannot be read.
        """
        known, wrong = prices.read(sorted(self._lists, key=lambda one: one.metadata.name))
        if wrong:
            log.error("budgets cannot be counted: %s", "; ".join(map(str, wrong)))
            self.standings = ()
            return
        teams = [one for one in self._teams if one.spec.budget is not None]
        some = known.budgets or teams
        self.standings = await asyncio.to_thread(self._counted, known, teams) if some else ()
        self.counted = True

    def _counted(self, known: Prices, teams: Sequence[Team]) -> list[Standing]:
        now = self._clock()
        start = billing.month_start(now - 1)
        nodes, claims = self._store.nodes(start, now), self._store.claims(start, now)
        return standings(nodes, claims, known, end=now, teams=teams)


def _named(one: Standing) -> tuple[str, ...]:
    return one.budget.queue, one.budget.namespace, one.budget.user, one.team


def _families() -> tuple[GaugeMetricFamily, GaugeMetricFamily]:
    return (
        GaugeMetricFamily(
            "lockstep_budget_spent_ratio",
            "Part of the month's budget that is spent.",
            labels=_LABELS,
        ),
        GaugeMetricFamily(
            "lockstep_budget_warn_ratio",
            "Part of the month's budget from which on there is a warning.",
            labels=_LABELS,
        ),
    )
