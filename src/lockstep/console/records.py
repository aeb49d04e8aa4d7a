"""What usage has cost, from insight's records, for those who may see whose it was."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from lockstep.api.price_list import PRICE_LISTS
from lockstep.console.sessions import Session
from lockstep.console.views.query import BadQuery
from lockstep.insight.cost import billing, prices
from lockstep.insight.cost.allocation import allocations
from lockstep.insight.cost.billing import Bill, Line
from lockstep.insight.cost.prices import Prices
from lockstep.insight.cost.windows import Question
from lockstep.insight.history.records import Claim, NodeSpan
from lockstep.insight.history.store import Store
from lockstep.kube.errors import Forbidden, NotFound

Json = dict[str, Any]
HIDDEN: Final = "(others)"
"""The name of what the user may not see."""
DAY: Final = 86_400.0
MOST_DAYS: Final = 92
MOST_LINES: Final = 500
PURPOSES: Final = ("job", "user", "queue", "namespace", "purpose")


class NoRecords(Exception):
    """The console was not told where the usage records are, or cannot read them."""


class Records:
    """The records of one file, which the controllers write."""

    def __init__(self, path: Path | None) -> None:
        self._path = path

    async def bill(
        self, session: Session, may_see: Callable[[str], bool], by: str, days: int, job: str = ""
    ) -> Json:
        """Return what was used in the last *days*, by one of ``PURPOSES``, and day by day.

        With *job* (NAMESPACE/NAME) only what that job used, and nothing of what was free.

        Raises:
            NoRecords: when there are none.
            BadQuery: for what makes no sense.
        """
        if by not in PURPOSES:
            raise BadQuery(f"by: {by[:40]!r} is none; use one of {', '.join(PURPOSES)}")
        if not 1 <= days <= MOST_DAYS:
            raise BadQuery(f"days: {days} is no number from 1 to {MOST_DAYS}")
        known, wrong = prices.read(await _lists(session))
        now = time.time()
        start = (now - days * DAY) // DAY * DAY + DAY
        nodes, claims = await asyncio.to_thread(self._read, start, now)
        if job:
            claims = [c for c in claims if f"{c.namespace}/{c.job}" == job]
        shown = [c if may_see(c.namespace) else _hidden(c) for c in claims]
        whole, daily = await asyncio.to_thread(_bills, nodes, shown, known, by, (start, now))
        told = _told(whole, daily, by, free=not job)
        return {**told, "problems": [str(one) for one in wrong], "since": start, "until": now}

    async def allocations(
        self, session: Session, may_see: Callable[[str], bool], asked: Question
    ) -> Json:
        """Return what OpenCost would answer to *asked*.

        Raises:
            NoRecords: when there are none.
        """
        known, _ = prices.read(await _lists(session))
        nodes, claims = await asyncio.to_thread(self._read, asked.start, asked.end)
        shown = [c if may_see(c.namespace) else _hidden(c) for c in claims]
        data: list[Json] = []
        for start, end in asked.sets:
            found = await asyncio.to_thread(
                allocations, nodes, shown, known, by=asked.by, start=start, end=end
            )
            data += found["data"]
        return {"code": 200, "status": "success", "data": data}

    def _read(self, start: float, end: float) -> tuple[list[NodeSpan], list[Claim]]:
        if self._path is None or not self._path.is_file():
            raise NoRecords("no usage records; start the console with --records FILE")
        try:
            store = Store(self._path, read_only=True)
            try:
                return store.nodes(start, end), store.claims(start, end)
            finally:
                store.close()
        except sqlite3.Error as error:
            raise NoRecords(f"the usage records cannot be read: {error}") from None


def _hidden(claim: Claim) -> Claim:
    return Claim(
        claim.pod_uid, claim.gpu, claim.purpose, claim.node, HIDDEN, HIDDEN, HIDDEN, HIDDEN,
        HIDDEN, HIDDEN, claim.share, claim.start, claim.end, claim.leaving, claim.guessed,
    )  # fmt: skip


def _bills(
    nodes: list[NodeSpan], claims: list[Claim], known: Prices, by: str, period: tuple[float, float]
) -> tuple[Bill, list[tuple[float, Bill]]]:
    start, end = period
    whole = billing.bill(nodes, claims, known, by=[by], start=start, end=end)
    daily = []
    day = start
    while day < end:
        until = min(day + DAY, end)
        there = [n for n in nodes if n.start < until and (n.end is None or n.end > day)]
        used = [c for c in claims if c.start < until and (c.end is None or c.end > day)]
        daily.append((day, billing.bill(there, used, known, by=[by], start=day, end=until)))
        day = until
    return whole, daily


def _told(whole: Bill, daily: list[tuple[float, Bill]], by: str, *, free: bool) -> Json:
    lines = sorted(whole.lines.items(), key=lambda one: (-one[1].cost, -one[1].gpu_hours))
    return {
        "currency": whole.currency,
        "by": billing.columns([by]),
        "lines": [{"key": list(key), **_line(line)} for key, line in lines[:MOST_LINES]],
        "free": _line(whole.free) if free else None,
        "total": _line(whole.total) if free else _line(_sum([one for _, one in lines])),
        "days": [
            {
                "day": day,
                "used": _line(_sum(list(bill.lines.values()))),
                **({"free": _line(bill.free)} if free else {}),
            }
            for day, bill in daily
        ],
    }


def _sum(lines: list[Line]) -> Line:
    return Line(
        sum(one.gpu_hours for one in lines),
        sum(one.cost for one in lines),
        sum(one.unpriced_gpu_hours for one in lines),
        sum(one.starting_gpu_hours for one in lines),
    )


def _line(line: Line) -> Json:
    return {
        "hours": round(line.gpu_hours, 3),
        "cost": round(line.cost, 2),
        "unpriced": round(line.unpriced_gpu_hours, 3),
        "starting": round(line.starting_gpu_hours, 3),
    }


async def _lists(session: Session) -> list[Any]:
    """Return the price lists that the user may read; without them hours have no price."""
    try:
        return list((await session.client.list(PRICE_LISTS)).items)
    except (Forbidden, NotFound):
        return []
