"""Which files the store opens, and how it says that it does not open one."""

from __future__ import annotations

import logging
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from lockstep.apiserver.store.log import FORMAT, SCHEMA, Log, Row, Unusable


def version_of(path: Path) -> int:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        return int(db.execute("PRAGMA user_version").fetchone()[0])


def test_a_commit_is_synced_before_it_returns(tmp_path: Path) -> None:
    log = Log(tmp_path / "store.db")
    # 2 is FULL: the write-ahead log is synced at every commit.
    assert log._db.execute("PRAGMA synchronous").fetchone() == (2,)
    assert log._db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    log.close()


def test_a_new_store_has_the_present_format(tmp_path: Path) -> None:
    Log(tmp_path / "store.db").close()
    assert version_of(tmp_path / "store.db") == FORMAT


def test_an_older_store_is_migrated_and_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "store.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.executescript(SCHEMA)
        db.execute("INSERT INTO log VALUES (1, 'pods', 'ns', 'a', 0, x'7b7d')")
    with caplog.at_level(logging.INFO):
        log = Log(path)
    assert list(log.rows()) == [Row(1, "pods", "ns", "a", 0, b"{}")]
    log.close()
    assert version_of(path) == FORMAT
    assert "brought from format 0" in caplog.text


def test_a_newer_store_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    Log(path).close()
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA user_version = 99")
    with pytest.raises(Unusable, match="format 99"):
        Log(path)
    assert version_of(path) == 99


@pytest.mark.parametrize("data", [b"no database" * 1000, b"SQLite format 3\0" + b"x" * 9000])
def test_a_damaged_store_is_refused_with_what_to_do(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "store.db"
    path.write_bytes(data)
    with pytest.raises(Unusable, match=r"damaged.*restore"):
        Log(path)
