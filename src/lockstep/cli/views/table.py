"""Tables, before anything is known about where they are printed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

NONE = "-"


@dataclass(frozen=True, slots=True)
class Column:
    """A column; a *wide* one shows only with ``-o wide``."""

    name: str
    wide: bool = False
    number: bool = False


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


def cell(value: object) -> str:
    """Return *value* as one line of printable text.

    Objects come from anywhere, so nothing in them may steer the terminal.
    """
    text = "" if value is None else " ".join(str(value).split())
    shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    return shown or NONE


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
    return "   ".join(parts).rstrip()
