"""Days that are over, as Parquet files: for years of history, and for others' tools.

One file a day and table: ``claims/2026-11-23.parquet``, ``nodes/2026-11-23.parquet``. Records are
cut to their day (UTC), so that days can be summed. A day is written once it has been over for an
hour, for what ended late in it is on record by then; a file is whole or not there.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from lockstep.insight.history.records import Claim, NodeSpan
from lockstep.insight.history.store import Store

DAY: Final = 86_400.0
SETTLED: Final = 3_600.0
"""Seconds after a day's end from which on it is written."""
TABLES: Final = ("claims", "nodes")
_CLAIM_TEXTS: Final = (
    "pod_uid", "purpose", "node", "namespace", "pod", "gang", "job", "queue", "user",
)  # fmt: skip
_NODE_TEXTS: Final = ("uid", "name", "model")


class DuckDbMissing(RuntimeError):
    """Parquet is written by DuckDB, which is not installed."""

    def __init__(self) -> None:
        super().__init__("Parquet needs DuckDB: pip install 'lockstep[insight]'")


def name_of(start: float) -> str:
    """Return the name of the day that begins at *start*."""
    return datetime.fromtimestamp(start, UTC).strftime("%Y-%m-%d")


def due(store: Store, folder: Path, now: float) -> Iterator[float]:
    """Yield the beginnings of days that are over, on record, and not yet written; oldest first.

    Raises:
        sqlite3.Error: when the records cannot be read.
    """
    first = store.first()
    if first is None:
        return
    start, last = first // DAY * DAY, (now - SETTLED) // DAY * DAY
    while start < last:
        if not all((folder / table / f"{name_of(start)}.parquet").exists() for table in TABLES):
            yield start
        start += DAY


def close(store: Store, folder: Path, start: float) -> tuple[int, int]:
    """Write the day that begins at *start*; return its numbers of claims and nodes.

    Raises:
        DuckDbMissing: where there is no DuckDB.
        OSError: when the folder cannot be written.
        sqlite3.Error: when the records cannot be read.
    """
    end = start + DAY
    claims, nodes = store.claims(start, end), store.nodes(start, end)
    _write(folder / "claims" / f"{name_of(start)}.parquet", _claim_columns(claims, start, end))
    _write(folder / "nodes" / f"{name_of(start)}.parquet", _node_columns(nodes, start, end))
    return len(claims), len(nodes)


def _claim_columns(claims: Sequence[Claim], start: float, end: float) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {
        name: [getattr(one, name) for one in claims] for name in _CLAIM_TEXTS
    }
    found["gpu"] = [one.gpu for one in claims]
    found["share"] = [one.share for one in claims]
    return {**found, **_times(claims, start, end)}


def _node_columns(nodes: Sequence[NodeSpan], start: float, end: float) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {
        name: [getattr(one, name) for one in nodes] for name in _NODE_TEXTS
    }
    found["gpus"] = [one.gpus for one in nodes]
    found["spot"] = [one.spot for one in nodes]
    found["labels"] = [json.dumps(dict(one.labels), sort_keys=True) for one in nodes]
    return {**found, **_times(nodes, start, end)}


def _times(
    records: Sequence[Claim] | Sequence[NodeSpan], start: float, end: float
) -> dict[str, list[Any]]:
    return {
        "start": [max(one.start, start) for one in records],
        "end": [end if one.end is None else min(one.end, end) for one in records],
        "guessed": [one.guessed for one in records],
    }


def _write(path: Path, columns: dict[str, list[Any]]) -> None:
    try:
        import duckdb
    except ImportError:
        raise DuckDbMissing from None
    import numpy as np

    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    kinds = {"gpu": np.int64, "gpus": np.int64, "share": np.float64, "spot": np.bool_,
             "start": np.float64, "end": np.float64, "guessed": np.bool_}  # fmt: skip
    table: dict[str, Any] = {
        name: np.array(told, dtype=kinds.get(name, object)) for name, told in columns.items()
    }
    try:
        with duckdb.connect() as database:
            database.register("day", table)
            # The name is a literal of SQL: a quote in it is doubled.
            where = str(draft).replace("'", "''")
            texts = [name for name in columns if name not in kinds]
            kept = ", ".join(
                f'"{name}"::VARCHAR AS "{name}"' if name in texts else f'"{name}"'
                for name in columns
            )
            database.execute(
                f"COPY (SELECT {kept} FROM day) TO '{where}' (FORMAT parquet, COMPRESSION zstd)"  # noqa: S608
            )
        draft.replace(path)
    except duckdb.Error as error:
        raise OSError(f"{path}: {error}") from error
    finally:
        draft.unlink(missing_ok=True)
