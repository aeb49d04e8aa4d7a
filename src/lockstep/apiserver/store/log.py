"""The log on disk: one row per revision in an SQLite file in WAL mode."""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

logger = logging.getLogger(__name__)

SCHEMA = """
CREATE TABLE IF NOT EXISTS log (
    revision INTEGER PRIMARY KEY,
    resource TEXT NOT NULL,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    deleted INTEGER NOT NULL,
    data BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT OR IGNORE INTO meta VALUES ('compacted', 0);
"""

FORMAT = 1
"""The version of the tables, kept in SQLite's ``user_version``."""

# Rows per INSERT. sqlite3 gives up the interpreter lock at every step, and getting it back from
# a busy event loop takes milliseconds; many rows in one statement make that one wait per batch.
CHUNKS = (128, 32, 8, 1)


class Row(NamedTuple):
    """One revision of one object, as stored."""

    revision: int
    resource: str
    namespace: str
    name: str
    deleted: int
    data: bytes


class LogInUse(Exception):
    """Another process has the data directory open."""


class Unusable(OSError):
    """A store that cannot be opened: of a newer format, damaged, or not writable."""


class Log:
    """An append-only table of revisions; only compaction deletes from it.

    It is opened exclusively: two servers on one directory would hand out the same revisions.

    Raises:
        LogInUse: when another process has the file open.
        Unusable: when the file is none that this version can open.
    """

    def __init__(self, path: Path, *, synchronous: str = "FULL") -> None:
        # Secrets are in it; SQLite gives the files beside it the same mode.
        path.touch(mode=0o600)
        path.chmod(0o600)
        self._path = path
        self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=0.5)
        try:
            self._db.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute(f"PRAGMA synchronous = {synchronous}")
            self._bring_up_to_date()
        except sqlite3.DatabaseError as error:
            self._db.close()
            if "locked" in str(error):
                raise LogInUse(f"{path} is in use by another API server") from error
            raise Unusable(_unusable(path, error)) from error
        except Unusable:
            self._db.close()
            raise

    def _bring_up_to_date(self) -> None:
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        if version > FORMAT:
            raise Unusable(
                f"{self._path} has format {version}, and this version of Lockstep knows formats "
                f"up to {FORMAT}: install the version that wrote it, or choose another --data"
            )
        self._db.executescript(SCHEMA)
        if version < FORMAT:
            # Before there were versions the tables were the same.
            self._db.execute(f"PRAGMA user_version = {FORMAT}")
            if version or self._db.execute("SELECT 1 FROM log LIMIT 1").fetchone():
                logger.info("%s: brought from format %d to %d", self._path, version, FORMAT)

    @property
    def compacted(self) -> int:
        """Return the revision up to which history has been given up."""
        (value,) = self._db.execute("SELECT value FROM meta WHERE key = 'compacted'").fetchone()
        return int(value)

    def rows(self) -> Iterator[Row]:
        """Yield all rows in the order of their revisions.

        Raises:
            Unusable: when the file is damaged.
        """
        query = "SELECT revision, resource, namespace, name, deleted, data FROM log"
        try:
            yield from map(Row._make, self._db.execute(query + " ORDER BY revision"))
        except sqlite3.DatabaseError as error:
            raise Unusable(_unusable(self._path, error)) from error

    def append(self, rows: Sequence[Row]) -> None:
        """Write *rows* in one transaction; when this returns they are durable."""
        if len(rows) in CHUNKS:
            self._insert(rows)
            return
        self._db.execute("BEGIN IMMEDIATE")
        try:
            start = 0
            for size in CHUNKS:
                while len(rows) - start >= size:
                    self._insert(rows[start : start + size])
                    start += size
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise

    def _insert(self, rows: Sequence[Row]) -> None:
        places = ",".join(["(?,?,?,?,?,?)"] * len(rows))
        values = [value for row in rows for value in row]
        self._db.execute(f"INSERT INTO log VALUES {places}", values)  # noqa: S608

    def compact(self, upto: int, superseded: Sequence[int]) -> None:
        """Give up history up to *upto*: delete the rows *superseded* that no client can ask for."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            # One statement, for the same reason as in CHUNKS.
            self._db.execute(
                "DELETE FROM log WHERE revision IN (SELECT value FROM json_each(?))",
                (json.dumps(list(superseded)),),
            )
            self._db.execute("UPDATE meta SET value = ? WHERE key = 'compacted'", (upto,))
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise

    def explain(self, error: Exception) -> str:
        """Return what a failed transaction means, and what helps."""
        return _unusable(self._path, error) if "full" in str(error) else str(error)

    def close(self) -> None:
        """Close the file, folding the write-ahead log into it."""
        self._db.close()


def _unusable(path: Path, error: Exception) -> str:
    text = str(error)
    if "full" in text:
        return f"{path}: the disk is full: make room on the file system of {path.parent}"
    if "readonly" in text or "unable to open" in text:
        return f"{path} cannot be written: {text}"
    return (
        f"{path} is damaged ({text}): move it away to begin with an empty cluster, or restore a "
        "copy of the directory that was made while nothing ran on it"
    )
