"""Usage and cost: bills against what the nodes cost, and 10 million records asked by DuckDB."""

from __future__ import annotations

import random
import resource
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bench.figure import Figure, NotMeasured
from lockstep.api import timestamp
from lockstep.api.price_list import PriceList
from lockstep.api.wire import convert
from lockstep.insight.cost import billing, prices
from lockstep.insight.history.days import DAY
from lockstep.insight.history.records import Claim, NodeSpan

SLOW = True
START = timestamp.parse("2026-11-01T00:00:00Z")
HOUR, DAYS, NODES, GPUS = 3600.0, 30, 8, 8
CHANGE = START + 15 * DAY
"""When the price of nodes that are not spot goes from 2 to 3 a GPU-hour."""
RECORDS, YEAR, QUEUES = 10_000_000, 365, 20


def run() -> list[Figure]:
    return [*_bills(), *_asked()]


def _bills() -> list[Figure]:
    """Bill a month of gangs, shares, spot and a price change; the nodes' bill is summed apart."""
    dice = random.Random(7)
    nodes = [
        NodeSpan(f"u{n}", f"n{n}", GPUS, START + n * HOUR, spot=n >= NODES // 2)
        for n in range(NODES)
    ]
    claims = [claim for node in nodes for claim in _used(node, dice)]
    given = [
        {"gpuHour": 2.0},
        {"gpuHour": 3.0, "validFrom": timestamp.show(CHANGE)},
        {"gpuHour": 0.8, "spot": True},
    ]
    tree = {"metadata": {"name": "cloud"}, "spec": {"currency": "EUR", "prices": given}}
    known, wrong = prices.read([convert(tree, PriceList)])
    assert not wrong, wrong
    end = START + DAYS * DAY
    began = time.perf_counter()
    bill = billing.bill(nodes, claims, known, by=["queue"], start=START, end=end)
    seconds = time.perf_counter() - began
    owed = sum(map(_owed, nodes))
    off = abs(bill.total.cost - owed) / owed * 100
    what = f"{DAYS} days of {NODES} nodes, {len(claims):,} records"
    return [
        Figure(f"{what}: bill against the nodes' cost", off, "%", better="lower", limit=0.1),
        Figure(f"{what}: time to bill", seconds, "s", better="lower"),
    ]


def _used(node: NodeSpan, dice: random.Random) -> list[Claim]:
    """Return what is held on a node: cards whole or in shares, with gaps."""
    found: list[Claim] = []
    end = START + DAYS * DAY
    for gpu in range(node.gpus):
        at = node.start
        while at < end:
            until = min(end, at + dice.uniform(0.1, 12) * HOUR)
            shares = dice.choice([(1.0,), (1.0,), (0.5, 0.25), (0.7, 0.6)])
            for share in shares:
                pod, queue = f"p{len(found)}-{node.name}-{gpu}", f"q{dice.randrange(QUEUES)}"
                who = (node.name, "lab", pod, pod, pod, queue, "ana")
                found.append(Claim(pod, gpu, "running", *who, share, at, until))
            at = until + dice.choice([0.0, dice.uniform(0, 3) * HOUR])
    return found


def _owed(node: NodeSpan) -> float:
    """Return what a node costs, by the prices as they are written above."""
    end = START + DAYS * DAY
    if node.spot:
        return (end - node.start) / HOUR * node.gpus * 0.8
    return ((CHANGE - node.start) * 2.0 + (end - CHANGE) * 3.0) / HOUR * node.gpus


def _asked() -> list[Figure]:
    """Ask a year of records, a file a day as the recorder closes them, for hours by queue."""
    try:
        import duckdb
    except ImportError:
        raise NotMeasured("DuckDB is not installed: pip install 'lockstep[insight]'") from None
    with tempfile.TemporaryDirectory() as place, duckdb.connect() as database:
        database.execute("SET threads = 2")
        folder, first = Path(place), datetime(2026, 1, 1, tzinfo=UTC)
        for day in range(YEAR):
            named, start = first + timedelta(days=day), first.timestamp() + day * DAY
            database.execute(
                f"COPY (SELECT 'pod-' || i AS pod_uid, 'running' AS purpose, "  # noqa: S608
                f"'q' || (hash(i) % {QUEUES}) AS queue, (i % 8) AS gpu, 1.0 AS share, "
                f'{start} + (i % 20) * 3600.0 AS start, {start} + (i % 20 + 3) * 3600.0 AS "end" '
                f"FROM range({RECORDS // YEAR}) t(i)) "
                f"TO '{folder / named.strftime('%Y-%m-%d')}.parquet' (FORMAT parquet)"
            )
        query = (
            'SELECT queue, purpose, sum(("end" - "start") / 3600 * share) '
            "FROM read_parquet('{}') GROUP BY ALL"
        )
        spans = {"month": ("2026-06-*.parquet", 100.0), "year": ("*.parquet", 300.0)}
        found = []
        for name, (files, limit) in spans.items():
            asked = query.format(folder / files)
            database.execute(asked).fetchall()
            began = time.perf_counter()
            rows = database.execute(asked).fetchall()
            seconds = time.perf_counter() - began
            assert len(rows) == QUEUES
            what = f"{RECORDS:,} records, a {name} by queue and purpose"
            found.append(Figure(what, seconds * 1000, "ms", better="lower", limit=limit))
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    found.append(Figure("memory while asking", most, "MB", better="lower", limit=300.0))
    return found
