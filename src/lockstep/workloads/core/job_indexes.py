"""Sets of completion indexes as a Job's status and success policy write them: ``0-2,5``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby


def read_indexes(text: str) -> set[int]:
    """Return the indexes that *text* names; empty for an empty text."""
    return {index for part in text.split(",") if part for index in _span(part)}


def _span(part: str) -> Iterable[int]:
    low, _, high = part.partition("-")
    return range(int(low), int(high or low) + 1)


def show_indexes(indexes: Iterable[int]) -> str:
    """Return *indexes* as text: three in a row and more as a span, ``0-2``."""
    return ",".join(_parts(sorted(indexes)))


def _parts(indexes: list[int]) -> Iterator[str]:
    for _, run in groupby(enumerate(indexes), key=lambda pair: pair[1] - pair[0]):
        row = [index for _, index in run]
        if len(row) > 2:
            yield f"{row[0]}-{row[-1]}"
        else:
            yield from map(str, row)
