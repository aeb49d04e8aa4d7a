"""Answers to questions about usage and cost: each tells its namespace's own, and no other's.

A question is an object in the namespace that it is about. So the API server has already decided who
may ask, by credentials of every kind: certificates, tokens or those of a proxy.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

import msgspec

from lockstep.api import timestamp
from lockstep.api.meta import ObjectMeta
from lockstep.api.names import SYSTEM_NAMESPACE
from lockstep.api.packing import pack
from lockstep.api.price_list import Price, PriceList
from lockstep.api.team import Team
from lockstep.api.usage_query import (
    USAGE_QUERIES,
    UsageLine,
    UsageQuery,
    UsageQueryStatus,
)
from lockstep.insight.cost import billing, prices, visible
from lockstep.insight.cost.allocation import allocations
from lockstep.insight.cost.billing import Line
from lockstep.insight.cost.budgets import standings
from lockstep.insight.cost.prices import Prices
from lockstep.insight.history.job_recorder import told
from lockstep.insight.history.records import Claim, NodeSpan
from lockstep.insight.history.store import Store
from lockstep.kube.client import Client
from lockstep.kube.informer import Informer
from lockstep.runtime.actions import Delete
from lockstep.runtime.controller import Key
from lockstep.runtime.execution import execute
from lockstep.runtime.status import write_status

KEPT: Final = 60.0
"""Seconds after which a question goes, answered or not; who asked may delete it before."""
MOST_BYTES: Final = 900_000
"""The longest answer: servers refuse objects of more than 1.5 MiB."""


@dataclass(frozen=True, slots=True)
class _Usage:
    nodes: list[NodeSpan]
    claims: list[Claim]
    prices: Prices


@dataclass
class UsageAnswers:
    """Answers each UsageQuery from the records, once."""

    client: Client
    queries: Informer[UsageQuery]
    lists: Iterable[PriceList]
    teams: Iterable[Team]
    store: Store
    clock: Callable[[], float] = time.time

    async def reconcile(self, key: Key) -> float | None:
        """Answer the question at *key*, or delete it when its time is over.

        Raises:
            ApiError: when the server cannot be used now.
        """
        query = self.queries.get(*key)
        if query is None or query.metadata.deletion_timestamp is not None:
            return None
        age = self.clock() - (timestamp.read(query.metadata.creation_timestamp) or 0.0)
        if age >= KEPT:
            await execute(self.client, Delete.of(USAGE_QUERIES, query.metadata))
            return None
        if not query.status.state:
            await write_status(self.client, USAGE_QUERIES, query, await self._answer(query))
        return KEPT - age + 1

    async def _answer(self, query: UsageQuery) -> UsageQueryStatus:
        asked = query.spec
        if asked.shape == "Jobs":
            return await self._jobs(query.metadata.namespace, asked.job)
        lists = [PriceList(metadata=ObjectMeta(name="given"), spec=one) for one in asked.prices]
        there = sorted(self.lists, key=lambda one: one.metadata.name)
        known, wrong = prices.read(lists or there)
        if wrong:
            # Of lists that are not the user's own it tells no names.
            given = "; ".join(map(str, wrong)) if lists else "an administrator can see how"
            return _refused(f"the price lists contradict each other: {given}")
        start = timestamp.read(asked.start) or 0.0
        end = min(timestamp.read(asked.end) or self.clock(), self.clock())
        try:
            status = await asyncio.to_thread(self._count, query, known, start, end)
        except sqlite3.Error as error:
            return _refused(f"the usage records cannot be read: {error}")
        if len(msgspec.json.encode(status)) > MOST_BYTES:
            return _refused(
                f"the answer is longer than {MOST_BYTES} bytes; "
                "ask for one month (--month) or for fewer groups (--by)"
            )
        return status

    async def _jobs(self, namespace: str, name: str) -> UsageQueryStatus:
        try:
            since = (await asyncio.to_thread(self.store.since)).get(namespace, 0.0)
            text = await asyncio.to_thread(told, self.store, namespace, name, since, MOST_BYTES)
        except sqlite3.Error as error:
            return _refused(f"the records of jobs cannot be read: {error}")
        return UsageQueryStatus(state="Answered", records=text)

    def _count(
        self, query: UsageQuery, known: Prices, start: float, end: float
    ) -> UsageQueryStatus:
        space, period = query.metadata.namespace, {"start": start, "end": end}
        usage = _Usage(self.store.nodes(start, end), self._claims(space, start, end), known)
        if query.spec.shape == "Records":
            if space != SYSTEM_NAMESPACE:
                return _refused(f"records are told in the namespace {SYSTEM_NAMESPACE} alone")
            return UsageQueryStatus(state="Answered", records=pack((usage.nodes, usage.claims)))
        sees = None if space == SYSTEM_NAMESPACE else space.__eq__
        by: list[str] = list(query.spec.by)
        if query.spec.shape == "Allocation":
            found = allocations(usage.nodes, usage.claims, known, by=by, sees=sees, **period)
            return UsageQueryStatus(state="Answered", allocation=json.dumps(found))
        bill = billing.bill(usage.nodes, usage.claims, known, by=by, sees=sees, **period)
        return UsageQueryStatus(
            state="Answered",
            currency=bill.currency,
            columns=billing.columns(by),
            lines=[_line(line, key) for key, line in sorted(bill.lines.items())],
            free=_line(bill.free) if sees is None else None,
            stray_gpu_hours=bill.stray_gpu_hours,
            prices=_prices(usage, space),
            warnings=self._warnings(known, space, start, end),
        )

    def _claims(self, space: str, start: float, end: float) -> list[Claim]:
        found = self.store.claims(start, end)
        return found if space == SYSTEM_NAMESPACE else visible.present(found, self.store.since())

    def _warnings(self, known: Prices, space: str, start: float, end: float) -> list[str]:
        # A month of which only a part was asked for says nothing about its budget.
        if end <= start or start > (since := billing.month_start(end - 1)):
            return []
        teams = list(self.teams)
        nodes, claims = self.store.nodes(since, end), self._claims(space, since, end)
        found = standings(nodes, claims, known, end=end, teams=teams)
        shown = found if space == SYSTEM_NAMESPACE else visible.budgets_for(found, teams, space)
        return [one.words for one in shown if one.state]


def _refused(why: str) -> UsageQueryStatus:
    return UsageQueryStatus(state="Refused", message=why)


def _prices(usage: _Usage, space: str) -> list[Price]:
    if space == SYSTEM_NAMESPACE:
        return [one.price for one in usage.prices.entries]
    return visible.prices_for(usage.prices, usage.nodes, usage.claims, space)


def _line(line: Line, key: tuple[str, ...] = ()) -> UsageLine:
    return UsageLine(
        list(key), line.gpu_hours, line.cost, line.unpriced_gpu_hours, line.starting_gpu_hours
    )
