"""Lists of any kind: objects to rows, and rows to one page of what a user may see."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from lockstep.api.core import AnyObject
from lockstep.console.views.kinds import Cell, Column, Kind
from lockstep.console.views.picture import Picture
from lockstep.console.views.query import Query
from lockstep.console.views.sorted_rows import SortedRows

MARKS = ("=", "+", "-", "@", "\t", "\r")
"""With what a cell begins that a spreadsheet would take for a formula."""


class Row(msgspec.Struct, frozen=True, gc=False):
    """An object in a list; cells stand in the order of its kind's columns."""

    namespace: str
    name: str
    uid: str
    cells: tuple[Cell, ...]


def row(kind: Kind, obj: AnyObject) -> Row:
    """Return the row of an object."""
    meta = obj.metadata
    cells = tuple(column.of(obj) for column in kind.columns)
    return Row(meta.namespace, meta.name, meta.uid, cells)


def key_of(namespace: str, name: str) -> str:
    """Return the key of a row."""
    return f"{namespace}/{name}" if namespace else name


def rows(columns: Iterable[Column]) -> SortedRows[Row]:
    """Return an empty list that can be sorted by these columns, and by name and namespace."""
    by: dict[str, Callable[[Row], Any]] = {
        "name": lambda one: one.name,
        "namespace": lambda one: one.namespace,
    }
    for at, column in enumerate(columns):
        by[column.name] = _order(at)
    return SortedRows(by)


def _order(at: int) -> Callable[[Row], Any]:
    def value(one: Row) -> Any:
        cell = one.cells[at]
        # Numbers stand before texts, and what is missing before both.
        if isinstance(cell, int | float):
            return (1, cell, "")
        return (2, 0, cell.lower()) if cell else (0, 0, "")

    return value


def shown(
    kind: Kind, there: SortedRows[Row], query: Query, may_see: Callable[[str], bool]
) -> Picture:
    """Return one page of the rows that match, of what *may_see* lets through.

    ``facts`` name the columns and count what matches: in all, and by state but for the query's.
    """
    states: Counter[str] = Counter()
    page: dict[str, Any] = {}
    total, end = 0, query.offset + query.limit
    for key, one, state in _matching(kind, there, query, may_see):
        states[state] += 1
        if query.phases and state not in query.phases:
            continue
        if query.offset <= total < end:
            page[key] = msgspec.structs.asdict(one)
        total += 1
    facts = {
        "total": total,
        "states": dict(sorted(states.items())) if kind.state else {},
        "columns": [[column.name, column.shape] for column in kind.columns],
        "namespaced": kind.resource.namespaced,
    }
    return Picture(facts, list(page), page)


def csv(
    kind: Kind, there: SortedRows[Row], query: Query, may_see: Callable[[str], bool]
) -> Iterator[list[str]]:
    """Yield every row that matches, as cells of text, below the names of the columns."""
    yield ["namespace", "name", *(column.name for column in kind.columns)]
    for _, one, state in _matching(kind, there, query, may_see):
        if not query.phases or state in query.phases:
            yield [harmless(cell) for cell in (one.namespace, one.name, *one.cells)]


def harmless(cell: Cell) -> str:
    """Return a cell so that no spreadsheet takes it for a formula."""
    told = "" if cell is None else str(cell)
    return f"'{told}" if isinstance(cell, str) and told[:1] in MARKS else told


def _matching(
    kind: Kind, there: SortedRows[Row], query: Query, may_see: Callable[[str], bool]
) -> Iterator[tuple[str, Row, str]]:
    names = [column.name for column in kind.columns]
    at = names.index(kind.state) if kind.state else -1
    allowed: dict[str, bool] = {}
    for key, one in there.by(query.sort, descending=query.descending):
        # What has no namespace is seen by its name.
        space, place = one.namespace, one.namespace if kind.resource.namespaced else one.name
        if place not in allowed:
            allowed[place] = may_see(place)
        if not allowed[place] or (query.namespace and space != query.namespace):
            continue
        if query.search and not _found(one, query.search):
            continue
        yield key, one, str(one.cells[at]) if at >= 0 else ""


def _found(one: Row, words: str) -> bool:
    if words in f"{one.namespace}/{one.name}".lower():
        return True
    return any(isinstance(cell, str) and words in cell.lower() for cell in one.cells)
