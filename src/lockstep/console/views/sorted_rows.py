"""Rows that are kept sorted by each column that was asked for, while they change one by one."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

R = TypeVar("R")
Entry = tuple[Any, str]


class SortedRows(Generic[R]):
    """Rows by key; a column is sorted at its first use and kept so from then on.

    Equal rows stand in the order of their keys, so that pages do not overlap.
    """

    def __init__(self, columns: dict[str, Callable[[R], Any]]) -> None:
        self.rows: dict[str, R] = {}
        self._columns = columns
        self._sorted: dict[str, list[Entry]] = {}

    def put(self, key: str, row: R) -> None:
        """Add or replace a row."""
        old = self.rows.get(key)
        self.rows[key] = row
        for name, entries in self._sorted.items():
            value = self._columns[name]
            if old is not None:
                if value(old) == value(row):
                    continue
                _remove(entries, (value(old), key))
            insort(entries, (value(row), key))

    def remove(self, key: str) -> None:
        """Remove a row, if it is there."""
        old = self.rows.pop(key, None)
        if old is not None:
            for name, entries in self._sorted.items():
                _remove(entries, (self._columns[name](old), key))

    def by(self, column: str, *, descending: bool) -> Iterator[tuple[str, R]]:
        """Yield keys and rows by a column.

        Raises:
            KeyError: when there is no such column.
        """
        entries = self._sorted.get(column)
        if entries is None:
            value = self._columns[column]
            entries = sorted((value(row), key) for key, row in self.rows.items())
            self._sorted[column] = entries
        rows = self.rows
        for _, key in reversed(entries) if descending else entries:
            yield key, rows[key]


def _remove(entries: list[Entry], entry: Entry) -> None:
    del entries[bisect_left(entries, entry)]
