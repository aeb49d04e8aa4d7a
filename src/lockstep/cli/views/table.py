"""Tables, before anything is known about where they are printed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from lockstep.cli.views.times import ago

T = TypeVar("T")

NONE = "-"
GAP = "   "
SHORTEST = 12
"""Fewest characters of a long text that are worth showing."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column; a *wide* one shows only with ``-o wide``."""

    name: str
    wide: bool = False
    number: bool = False
    text: bool = False
    """Whether it holds sentences, which are cut where the line is too long."""


NAMESPACE = Column("Namespace", wide=True)
"""Shown too when objects of all namespaces are listed."""


@dataclass(frozen=True, slots=True)
class Table:
    """Columns and rows of text."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]

    def narrow(self, *keep: Column) -> Table:
        """Return the table without its wide columns, except those to *keep*."""
        kept = [i for i, column in enumerate(self.columns) if not column.wide or column in keep]
        return Table(
            tuple(self.columns[i] for i in kept),
            tuple(tuple(row[i] for i in kept) for row in self.rows),
        )


def table(columns: Sequence[Column | str], rows: Iterable[Iterable[object]]) -> Table:
    """Build a table; None and empty cells become a dash."""
    return Table(
        tuple(Column(c) if isinstance(c, str) else c for c in columns),
        tuple(tuple(cell(value) for value in row) for row in rows),
    )


Cells = Sequence[tuple[Column | str, Callable[[T], object]]]
"""Columns, each with the function that returns its cell for an item."""
IN_NAMESPACE: Final[tuple[Column, Callable[[Any], object]]] = (
    NAMESPACE,
    lambda one: one.metadata.namespace,
)
NAMED: Final[tuple[str, Callable[[Any], object]]] = ("Name", lambda one: one.metadata.name)


def age(now: float) -> tuple[str, Callable[[Any], object]]:
    """Return the column that says how long objects have existed at the Unix time *now*."""
    return "Age", lambda one: ago(one.metadata.creation_timestamp, now)


def rows(items: Iterable[T], cells: Cells[T]) -> Table:
    """Build a table with a row for each item."""
    return table([name for name, _ in cells], ([of(one) for _, of in cells] for one in items))


def place(one: Any) -> tuple[str, list[tuple[int, str]]]:
    """Return the sort key of objects: namespace, then name with its numbers by size."""
    return one.metadata.namespace, natural(one.metadata.name)


def natural(name: str) -> list[tuple[int, str]]:
    """Return a sort key by which ``node-2`` comes before ``node-10``."""
    parts: list[tuple[int, str]] = []
    digits = ""
    for char in f"{name}\0":
        if char.isdecimal():
            digits += char
            continue
        if digits:
            parts.append((int(digits), ""))
            digits = ""
        parts.append((-1, char))
    return parts


def cell(value: object) -> str:
    """Return *value* as one line of printable text.

    Objects come from anywhere, so nothing in them may steer the terminal.
    """
    text = "" if value is None else " ".join(str(value).split())
    shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    return shown or NONE


def fit(shown: Table, width: int) -> Table:
    """Return the table so that each row takes one line of *width* characters.

    Sentences are cut first, then columns left out from the right, but for the first two.
    """
    while (over := _breadth(shown) - width) > 0:
        last = len(shown.columns) - 1
        texts = [i for i, column in enumerate(shown.columns) if column.text]
        if texts and (room := _width(shown, texts[-1]) - over) >= SHORTEST:
            return _cut(shown, texts[-1], room)
        gone = texts[-1] if texts else last
        if gone < 2:
            return _cut(shown, last, max(1, _width(shown, last) - over))
        shown = _without(shown, gone)
    return shown


def _width(shown: Table, column: int) -> int:
    return max(len(shown.columns[column].name), *(len(row[column]) for row in shown.rows), 0)


def _breadth(shown: Table) -> int:
    every = range(len(shown.columns))
    return sum(_width(shown, i) for i in every) + len(GAP) * (len(shown.columns) - 1)


def _cut(shown: Table, column: int, width: int) -> Table:
    def cut(text: str) -> str:
        return text if len(text) <= width else f"{text[: width - 1]}…"

    rows = tuple((*row[:column], cut(row[column]), *row[column + 1 :]) for row in shown.rows)
    return Table(shown.columns, rows)


def _without(shown: Table, column: int) -> Table:
    rows = tuple((*row[:column], *row[column + 1 :]) for row in shown.rows)
    return Table((*shown.columns[:column], *shown.columns[column + 1 :]), rows)


def plain(shown: Table, rows: Sequence[tuple[str, ...]] | None = None) -> str:
    """Return the table as aligned text with upper-case headings.

    With *rows* only those are shown, without headings, in the widths of the whole table.
    """
    header = tuple(column.name.upper() for column in shown.columns)
    lines = [header, *shown.rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    chosen = lines if rows is None else rows
    return "\n".join(_line(line, shown.columns, widths) for line in chosen)


def _line(line: Sequence[str], columns: Sequence[Column], widths: Sequence[int]) -> str:
    parts = [
        text.rjust(width) if column.number else text.ljust(width)
        for text, column, width in zip(line, columns, widths, strict=True)
    ]
    return GAP.join(parts).rstrip()
