"""What usage has cost, from insight's records, for those who may see whose it was."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Final, get_args

from lockstep.api import timestamp
from lockstep.api.price_list import PRICE_LISTS, PriceList
from lockstep.api.training import TRAINING_JOBS
from lockstep.api.usage_query import Group, UsageQuerySpec
from lockstep.api.wire import Json
from lockstep.console.sessions import Session
from lockstep.console.views.query import BadQuery
from lockstep.insight.cost import billing, prices, visible
from lockstep.insight.cost.allocation import allocations
from lockstep.insight.cost.billing import Bill, Line, added
from lockstep.insight.cost.prices import Prices
from lockstep.insight.cost.windows import Question
from lockstep.insight.history.records import Claim, NodeSpan
from lockstep.insight.history.store import Store
from lockstep.kube.client import Client
from lockstep.kube.errors import Forbidden, NotFound
from lockstep.kube.usage import NoAnswer, ask, ask_all

Sees = Callable[[str], bool] | None
"""What tells which namespaces a user may see; None for one who may see all."""
DAY: Final = 86_400.0
MOST_DAYS: Final = 92
MOST_LINES: Final = 500
_BY: Final[Mapping[str, Group]] = {
    one: one for one in get_args(Group) if one not in ("pod", "month")
}
PURPOSES: Final = tuple(_BY)


class NoRecords(Exception):
    """The console was not told where the usage records are, or cannot read them."""


class Records:
    """The records of one file, which the controllers write, priced as the console reads prices.

    Without a file the recorder of the cluster is asked, in the user's own name.
    """

    def __init__(self, path: Path | None, client: Client) -> None:
        self._path, self._client = path, client

    async def bill(self, session: Session, by: str, days: int, job: str = "") -> Json:
        """Return what was used in the last *days*, by one of ``PURPOSES``, and day by day.

        It is what namespaces used whose jobs the user may list; free GPU time is told to users who
        may list all.
        With *job* (NAMESPACE/NAME) only what that job used, and nothing of what was free.

        Raises:
            NoRecords: when there are none.
            BadQuery: for what makes no sense.
        """
        if by not in PURPOSES:
            raise BadQuery(f"by: {by[:40]!r} is none; use one of {', '.join(PURPOSES)}")
        if not 1 <= days <= MOST_DAYS:
            raise BadQuery(f"days: {days} is no number from 1 to {MOST_DAYS}")
        now = time.time()
        start = (now - days * DAY) // DAY * DAY + DAY
        if self._path is None:
            return await self._asked(session, by, (start, now), job)
        known, wrong = prices.read(await self._lists())
        nodes, claims, since = await asyncio.to_thread(self._read, start, now)
        if job:
            claims = [c for c in claims if f"{c.namespace}/{c.job}" == job]
        sees = await _seen(session, claims)
        if sees is not None:
            claims = visible.present(claims, since)
        whole, daily = await asyncio.to_thread(
            _bills, (nodes, claims), known, by, (start, now), sees
        )
        told = _told(whole, daily, by, free=not job and sees is None)
        # The words about lists that contradict each other name others' nodes and budgets.
        problems = [str(one) for one in wrong] if sees is None else []
        return {**told, "problems": problems, "since": start, "until": now}

    async def _asked(
        self, session: Session, by: str, period: tuple[float, float], job: str
    ) -> Json:
        """Return the answer of the cluster's recorder, as one day."""
        start, now = period
        groups: list[Group] = ["job", "purpose"] if job else [_BY[by]]
        spec = UsageQuerySpec(by=groups, start=timestamp.show(start))
        try:
            if job:
                answers = [await ask(session.client, job.partition("/")[0], spec)]
            else:
                found = await ask_all(session.client, session.namespace, spec)
                answers = list(found.values())
        except (NoAnswer, Forbidden) as error:
            raise NoRecords(f"no usage records: {error}") from None
        whole, free = billing.read_bill(answers), answers[0].free is not None and not job
        if job:
            own = {k[2:]: line for k, line in whole.lines.items() if "/".join(k[:2]) == job}
            whole = replace(whole, lines=own)
        told = _told(whole, [(start, whole)], by, free=free)
        return {**told, "problems": [], "since": start, "until": now}

    async def allocations(self, session: Session, asked: Question) -> Json:
        """Return what OpenCost would answer to *asked*; what the user may not see is left out.

        Raises:
            NoRecords: when there are none.
        """
        known, _ = prices.read(await self._lists())
        nodes, claims, since = await asyncio.to_thread(self._read, asked.start, asked.end)
        sees = await _seen(session, claims)
        if sees is not None:
            claims = visible.present(claims, since)
        data: list[Json] = []
        for start, end in asked.sets:
            found = await asyncio.to_thread(
                allocations, nodes, claims, known, by=asked.by, start=start, end=end, sees=sees
            )
            data += found["data"]
        return {"code": 200, "status": "success", "data": data}

    async def _lists(self) -> list[PriceList]:
        """Return the price lists as the console reads them: users may not, for they name others."""
        try:
            return list((await self._client.list(PRICE_LISTS)).items)
        except (Forbidden, NotFound):
            return []

    def _read(
        self, start: float, end: float
    ) -> tuple[list[NodeSpan], list[Claim], dict[str, float]]:
        if self._path is None or not self._path.is_file():
            raise NoRecords("no usage records; start the console with --records FILE")
        try:
            with closing(Store(self._path, read_only=True)) as store:
                return store.nodes(start, end), store.claims(start, end), store.since()
        except sqlite3.Error as error:
            raise NoRecords(f"the usage records cannot be read: {error}") from None


async def _seen(session: Session, claims: list[Claim]) -> Sees:
    # Of the records, and not of what is there: the jobs that used them may be gone.
    return await session.rights.only(TRAINING_JOBS, lambda: {one.namespace for one in claims})


def _bills(
    usage: tuple[list[NodeSpan], list[Claim]],
    known: Prices,
    by: str,
    period: tuple[float, float],
    sees: Sees,
) -> tuple[Bill, list[tuple[float, Bill]]]:
    (nodes, claims), (start, end) = usage, period
    whole = billing.bill(nodes, claims, known, by=[by], start=start, end=end, sees=sees)
    daily = []
    day = start
    while day < end:
        until = min(day + DAY, end)
        there = [n for n in nodes if n.start < until and (n.end is None or n.end > day)]
        used = [c for c in claims if c.start < until and (c.end is None or c.end > day)]
        found = billing.bill(there, used, known, by=[by], start=day, end=until, sees=sees)
        daily.append((day, found))
        day = until
    return whole, daily


def _told(whole: Bill, daily: list[tuple[float, Bill]], by: str, *, free: bool) -> Json:
    lines = sorted(whole.lines.items(), key=lambda one: (-one[1].cost, -one[1].gpu_hours))
    return {
        "currency": whole.currency,
        "by": billing.columns([by]),
        "lines": [{"key": list(key), **_line(line)} for key, line in lines[:MOST_LINES]],
        "free": _line(whole.free) if free else None,
        "total": _line(whole.total) if free else _line(added(whole.lines.values())),
        "days": [
            {
                "day": day,
                "used": _line(added(bill.lines.values())),
                **({"free": _line(bill.free)} if free else {}),
            }
            for day, bill in daily
        ],
    }


def _line(line: Line) -> Json:
    return {
        "hours": round(line.gpu_hours, 3),
        "cost": round(line.cost, 2),
        "unpriced": round(line.unpriced_gpu_hours, 3),
        "starting": round(line.starting_gpu_hours, 3),
    }
