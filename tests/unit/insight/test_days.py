"""Days that are over become Parquet files whose sums are those of the records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.support.costs import HOUR, claim

from lockstep.api import timestamp
from lockstep.insight.history import days
from lockstep.insight.history.records import NodeSpan
from lockstep.insight.history.store import Store

duckdb = pytest.importorskip("duckdb", reason="needs the insight extra")
START = timestamp.parse("2026-11-01T00:00:00Z")
DAY = 24 * HOUR
ODD = 'o\'brien "q"'


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path / "usage.db")
    used = [
        claim("a", 0, START + 20 * HOUR, START + 30 * HOUR, queue=ODD),
        claim("b", 1, START + 26 * HOUR, None, share=0.5),
    ]
    made.put(used, [NodeSpan("nu", "n", 8, START + HOUR, labels={"zone": "a"})])
    return made


def asked(folder: Path, query: str) -> Any:
    """Ask all days of a folder; they are the table ``claims``."""
    with duckdb.connect() as database:
        files = sorted(map(str, (folder / "claims").glob("*.parquet")))
        database.read_parquet(files).create_view("claims")
        return database.execute(query).fetchall()


def test_a_settled_day_is_due_until_it_is_written(store: Store, tmp_path: Path) -> None:
    folder = tmp_path / "days"
    assert list(days.due(store, folder, START + DAY + HOUR / 2)) == []
    assert list(days.due(store, folder, START + DAY + HOUR)) == [START]
    days.close(store, folder, START)
    assert list(days.due(store, folder, START + DAY + HOUR)) == []
    assert list(days.due(store, folder, START + 3 * DAY + HOUR)) == [START + DAY, START + 2 * DAY]
    assert list(days.due(Store(tmp_path / "none.db"), folder, START)) == []


def test_the_days_sum_to_the_records(store: Store, tmp_path: Path) -> None:
    folder = tmp_path / "days of o'brien"
    for start in days.due(store, folder, START + 2 * DAY + HOUR):
        days.close(store, folder, start)
    query = 'SELECT pod, queue, sum("end" - "start") / 3600, max(share) FROM claims'
    found = asked(folder, f"{query} GROUP BY ALL ORDER BY pod")
    assert found == [("a", ODD, 10.0, 1.0), ("b", "q", 22.0, 0.5)]
    assert not list(folder.rglob(".*"))


def test_a_day_without_records_is_an_empty_file(store: Store, tmp_path: Path) -> None:
    assert days.close(store, tmp_path, START - 5 * DAY) == (0, 0)
    assert asked(tmp_path, "SELECT count(*) FROM claims") == [(0,)]
