"""Records kept as numbers in columns: a month of a large cluster is millions of them."""

from __future__ import annotations

from array import array
from collections.abc import Hashable
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T", bound=Hashable)

CHUNK = 1 << 15
"""Rows of one piece; growing takes another piece and copies nothing."""


class Rows:
    """Rows of one type, numbered in the order in which they came."""

    def __init__(self, dtype: np.dtype[np.void]) -> None:
        self._dtype = dtype
        self._chunks: list[NDArray[np.void]] = []
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, row: tuple[Any, ...]) -> int:
        """Keep another row, its fields in the order of the type; return its number."""
        number = self._count
        if number == len(self._chunks) * CHUNK:
            self._chunks.append(np.empty(CHUNK, self._dtype))
        self._count += 1
        self[number] = row
        return number

    def __setitem__(self, number: int, row: tuple[Any, ...]) -> None:
        self._chunks[number // CHUNK][number % CHUNK] = row

    def __getitem__(self, number: int) -> tuple[Any, ...]:
        """Return a row's fields as numbers of Python."""
        found: tuple[Any, ...] = self._chunks[number // CHUNK][number % CHUNK].item()
        return found

    def column(self, field: str) -> NDArray[Any]:
        """Return one field of all rows, as an array of its own."""
        if not self._chunks:
            return np.empty(0, self._dtype[field])
        return np.concatenate([chunk[field] for chunk in self._chunks])[: self._count]


class Texts:
    """Texts numbered in the order in which they came, most of them different from each other."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._ends = array("Q", [0])

    def __len__(self) -> int:
        return len(self._ends) - 1

    def add(self, text: str) -> int:
        """Keep another text; return its number."""
        self._bytes += text.encode()
        self._ends.append(len(self._bytes))
        return len(self) - 1

    def __getitem__(self, number: int) -> str:
        if not 0 <= number < len(self):
            raise IndexError(number)
        return self._bytes[self._ends[number] : self._ends[number + 1]].decode()


class Distinct(Generic[T]):
    """Values numbered at their first mention, few of them different from each other."""

    def __init__(self) -> None:
        self._numbers: dict[T, int] = {}
        self.values: list[T] = []
        """Each value at its number."""

    def number(self, value: T) -> int:
        """Return the number of a value."""
        found = self._numbers.get(value)
        if found is None:
            found = self._numbers[value] = len(self.values)
            self.values.append(value)
        return found
