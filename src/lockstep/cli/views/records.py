"""Rows of a table for programs: numbers as numbers, under keys that no heading changes."""

from __future__ import annotations

import re
from typing import Final

from lockstep.cli.views.table import NONE, Column, Table

Amount = int | float
Value = str | Amount | dict[str, Amount | None] | None

_UNITS: Final = {"": 1, "%": 1, "Mi": 1 << 20, "Gi": 1 << 30}
_NUMBER: Final = re.compile(r"(-?\d+(?:\.\d+)?)(%|Mi|Gi)?(?:/(-|\d+(?:\.\d+)?)(%|Mi|Gi)?)?")
_WORDS: Final = {"%": "percent", "s": "seconds", "°C": "celsius"}


def records(shown: Table) -> list[dict[str, Value]]:
    """Return the rows by key: the column ``Step s`` is ``stepSeconds``, ``3/8`` two numbers."""
    keys = [key(column.name) for column in shown.columns]
    return [
        dict(zip(keys, (value(*one) for one in zip(row, shown.columns, strict=True)), strict=True))
        for row in shown.rows
    ]


def key(name: str) -> str:
    """Return the key of a column: ``GPUs used`` is ``gpusUsed``."""
    first, *others = (_WORDS.get(word, word.lower()) for word in name.split())
    return first + "".join(word.capitalize() for word in others)


def value(cell: str, column: Column) -> Value:
    """Return what a cell holds; amounts of memory are bytes."""
    if cell == NONE:
        return None
    found = _NUMBER.fullmatch(cell) if column.number else None
    if found is None:
        return cell
    number, unit, whole, whole_unit = found.groups(default="")
    used = _amount(number, unit or whole_unit)
    if not whole:
        return used
    return {"used": used, "of": None if whole == NONE else _amount(whole, whole_unit)}


def _amount(number: str, unit: str) -> Amount:
    given = float(number) if "." in number else int(number)
    return round(given * _UNITS[unit]) if _UNITS[unit] > 1 else given
