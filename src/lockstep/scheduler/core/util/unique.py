"""The distinct values of an array, and where they are in it."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from lockstep.scheduler.core.util.array_types import IntArray

Scalar = TypeVar("Scalar", bound=np.generic)


def distinct(values: NDArray[Scalar]) -> NDArray[Scalar]:
    """Return the distinct values in ascending order.

    ``numpy.unique`` does the same, but loads all of masked arrays on its first call, and most
    arrays here hold one value many times.
    """
    if len(values) < 2 or (values == values[0]).all():
        return values[:1]
    ordered = np.sort(values)
    keep: NDArray[Any] = np.ones(len(ordered), dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=keep[1:])
    found: NDArray[Scalar] = ordered[keep]
    return found


def numbered(values: NDArray[Scalar]) -> tuple[IntArray, IntArray]:
    """Return where each distinct value is first, and for each place the number of its value.

    The values are numbered from 0 in ascending order.
    """
    number: IntArray = np.searchsorted(distinct(values), values)
    first: IntArray = np.zeros(int(number.max(initial=-1)) + 1, dtype=np.int64)
    first[number[::-1]] = np.arange(len(values) - 1, -1, -1)
    return first, number
