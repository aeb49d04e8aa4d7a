"""Usage records in SQLite: written again and again without doubling, readable meanwhile."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from lockstep.insight.history.records import Claim, KeptJob, NodeSpan

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS claims (
  pod_uid TEXT NOT NULL, gpu INTEGER NOT NULL, purpose TEXT NOT NULL,
  node TEXT NOT NULL, namespace TEXT NOT NULL, pod TEXT NOT NULL, gang TEXT NOT NULL,
  job TEXT NOT NULL, queue TEXT NOT NULL, user TEXT NOT NULL, share REAL NOT NULL,
  start REAL NOT NULL, end REAL, leaving REAL, guessed INTEGER NOT NULL,
  PRIMARY KEY (pod_uid, gpu, purpose)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS open_claims ON claims (namespace, gang) WHERE end IS NULL;
CREATE INDEX IF NOT EXISTS claims_by_end ON claims (end);
CREATE TABLE IF NOT EXISTS nodes (
  uid TEXT NOT NULL, start REAL NOT NULL, name TEXT NOT NULL, gpus INTEGER NOT NULL,
  end REAL, model TEXT NOT NULL, spot INTEGER NOT NULL, labels TEXT NOT NULL,
  guessed INTEGER NOT NULL,
  PRIMARY KEY (uid, start)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS jobs (
  uid TEXT PRIMARY KEY, namespace TEXT NOT NULL, name TEXT NOT NULL, created TEXT NOT NULL,
  deleted REAL, body BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS jobs_by_name ON jobs (namespace, name, created);
CREATE INDEX IF NOT EXISTS jobs_by_end ON jobs (deleted);
CREATE TABLE IF NOT EXISTS namespaces (
  name TEXT PRIMARY KEY, uid TEXT NOT NULL, since REAL NOT NULL) WITHOUT ROWID;
"""
_VERSION: Final = 1
# A later look may know less (a container that was started again hides its first start), so times
# only ever move towards what is known for certain: the earliest start, the first certain end.
_PUT_CLAIM: Final = """
INSERT INTO claims (pod_uid, gpu, purpose, node, namespace, pod, gang, job, queue, user, share,
                    start, end, leaving, guessed)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET
  start = min(start, excluded.start),
  end = CASE WHEN end IS NULL THEN excluded.end
             WHEN excluded.end IS NULL THEN end
             WHEN guessed > excluded.guessed THEN excluded.end ELSE min(end, excluded.end) END,
  guessed = CASE WHEN end IS NULL OR excluded.end IS NULL THEN max(guessed, excluded.guessed)
                 ELSE min(guessed, excluded.guessed) END,
  leaving = coalesce(excluded.leaving, leaving),
  user = CASE WHEN excluded.user = '' THEN user ELSE excluded.user END
"""
_PUT_NODE: Final = """
INSERT INTO nodes (uid, start, name, gpus, end, model, spot, labels, guessed)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET end = coalesce(end, excluded.end),
  guessed = CASE WHEN end IS NULL THEN excluded.guessed ELSE guessed END
"""
_PUT_JOB: Final = """
INSERT INTO jobs (uid, namespace, name, created, deleted, body) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET deleted = excluded.deleted, body = excluded.body
"""
# What is on record of a name when its namespace is seen first is of that namespace.
_PUT_NAMESPACE: Final = """
INSERT INTO namespaces (name, uid, since) VALUES (?, ?, 0)
ON CONFLICT DO UPDATE SET uid = excluded.uid, since = ? WHERE uid <> excluded.uid
"""
_CLAIM_COLUMNS: Final = (
    "pod_uid, gpu, purpose, node, namespace, pod, gang, job, queue, user, share, start, end,"
    " leaving, guessed"
)
_NODE_COLUMNS: Final = "uid, name, gpus, start, end, model, spot, labels, guessed"


class Store:
    """The records in one file; safe to use from several threads.

    Raises:
        sqlite3.Error: from every method, when the file cannot be read or written.
    """

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.path = path
        self._lock = threading.Lock()
        if read_only:
            where = f"{path.absolute().as_uri()}?mode=ro"
            self._db = sqlite3.connect(where, uri=True, check_same_thread=False)
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        # Its group may read it: a console or a report of another user.
        path.touch(mode=0o640)
        with suppress(PermissionError):
            path.chmod(0o640)
        self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._db.execute("PRAGMA journal_mode = WAL")
        # A gang is let go once it is on record: that must outlast the machine's end, too.
        self._db.execute("PRAGMA synchronous = FULL")
        found = int(self._db.execute("PRAGMA user_version").fetchone()[0])
        if found > _VERSION:
            raise sqlite3.DatabaseError(f"{path} was written by a later Lockstep")
        self._db.executescript(_SCHEMA)
        self._db.execute(f"PRAGMA user_version = {_VERSION}")

    def put(self, claims: Iterable[Claim] = (), nodes: Iterable[NodeSpan] = ()) -> None:
        """Write all of them or none; what is there already is brought up to date."""
        rows, spans = [_claim_row(c) for c in claims], [_node_row(n) for n in nodes]
        if not rows and not spans:
            return
        with self._lock:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                self._db.executemany(_PUT_CLAIM, rows)
                self._db.executemany(_PUT_NODE, spans)
                self._db.execute("COMMIT")
            except BaseException:
                self._db.execute("ROLLBACK")
                raise

    def open_claims(self, namespace: str | None = None, gang: str | None = None) -> list[Claim]:
        """Return the claims without an end, of one gang or of all."""
        if namespace is None:
            return self._claims("WHERE end IS NULL", ())
        return self._claims("WHERE end IS NULL AND namespace = ? AND gang = ?", (namespace, gang))

    def claims(self, start: float, end: float) -> list[Claim]:
        """Return the claims that last some time within *start* and *end*."""
        return self._claims("WHERE start < ? AND (end IS NULL OR end > ?)", (end, start))

    def first(self) -> float | None:
        """Return when the oldest record begins; None where there is none."""
        with self._lock:
            found = self._db.execute(
                "SELECT min(start) FROM (SELECT min(start) AS start FROM claims "
                "UNION ALL SELECT min(start) FROM nodes)"
            ).fetchone()[0]
        return None if found is None else float(found)

    def open_nodes(self) -> list[NodeSpan]:
        """Return the nodes that are there, as far as is on record."""
        return self._nodes("WHERE end IS NULL", ())

    def nodes(self, start: float, end: float) -> list[NodeSpan]:
        """Return the nodes that were there some time within *start* and *end*."""
        return self._nodes("WHERE start < ? AND (end IS NULL OR end > ?)", (end, start))

    def put_job(self, job: KeptJob) -> None:
        """Write the last state of a job in place of the one before."""
        with self._lock:
            self._db.execute(_PUT_JOB, job)

    def jobs(self, namespace: str, name: str, most: int) -> list[KeptJob]:
        """Return the latest jobs of a namespace, of one name or of all, the newest first."""
        query = (
            "SELECT uid, namespace, name, created, deleted, body FROM jobs WHERE namespace = ? "
            "AND ? IN ('', name) ORDER BY created DESC, deleted IS NOT NULL, rowid DESC LIMIT ?"
        )
        with self._lock:
            rows = self._db.execute(query, (namespace, name, most)).fetchall()
        return [KeptJob(*row) for row in rows]

    def jobs_there(self) -> list[tuple[str, str, str]]:
        """Return uid, namespace and name of the jobs that are not known to be deleted."""
        query = "SELECT uid, namespace, name FROM jobs WHERE deleted IS NULL"
        with self._lock:
            return self._db.execute(query).fetchall()

    def jobs_gone(self, uids: Iterable[str], at: float) -> None:
        """Write that jobs were deleted."""
        with self._lock:
            self._db.executemany(
                "UPDATE jobs SET deleted = ? WHERE uid = ? AND deleted IS NULL",
                [(at, uid) for uid in uids],
            )

    def forget_jobs(self, before: float) -> None:
        """Drop the jobs that were deleted before a time."""
        with self._lock:
            self._db.execute("DELETE FROM jobs WHERE deleted < ?", (before,))

    def put_namespace(self, name: str, uid: str, created: float) -> None:
        """Write which namespace has a name, and since when if another one had it before."""
        with self._lock:
            self._db.execute(_PUT_NAMESPACE, (name, uid, created))

    def since(self) -> dict[str, float]:
        """Return since when each namespace is the one that it is: before, others had the name."""
        with self._lock:
            return dict(self._db.execute("SELECT name, since FROM namespaces").fetchall())

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._db.close()

    def _claims(self, where: str, values: tuple[Any, ...]) -> list[Claim]:
        query = f"SELECT {_CLAIM_COLUMNS} FROM claims {where}"  # noqa: S608 - own constants
        with self._lock:
            rows = self._db.execute(query, values).fetchall()
        return [Claim(*(*row[:14], bool(row[14]))) for row in rows]

    def _nodes(self, where: str, values: tuple[Any, ...]) -> list[NodeSpan]:
        query = f"SELECT {_NODE_COLUMNS} FROM nodes {where}"  # noqa: S608 - own constants
        with self._lock:
            rows = self._db.execute(query, values).fetchall()
        return [
            NodeSpan(*(*row[:6], bool(row[6]), json.loads(row[7]), bool(row[8]))) for row in rows
        ]


def _claim_row(c: Claim) -> tuple[Any, ...]:
    who = (c.node, c.namespace, c.pod, c.gang, c.job, c.queue, c.user)
    return (*c.key, *who, c.share, c.start, c.end, c.leaving, int(c.guessed))


def _node_row(n: NodeSpan) -> tuple[Any, ...]:
    labels = json.dumps(dict(n.labels), sort_keys=True)
    return (n.uid, n.start, n.name, n.gpus, n.end, n.model, int(n.spot), labels, int(n.guessed))
