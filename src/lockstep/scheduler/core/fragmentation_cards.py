"""What the rest of a shared card is worth to the shares that usually come.

Filling cards with shares is cutting stock: sizes come at known rates, and the fewest cards that
hold them all give each size a price, the part of a card that one of it is worth in the best mix
(Gilmore and Gomory). A size that fits into what others must leave over is worth nothing: 160 beside
an 810. The rest of a card is worth the dearest sizes that still fit on it.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from lockstep.scheduler.core.fragmentation_state import WHOLE

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

GRAIN = 10
"""Milli in which cards are cut here; sizes are rounded up to it."""
SLOTS = WHOLE // GRAIN
ROUNDS = 400
"""Patterns tried at most; a few dozen are enough as a rule."""
EPSILON = 1e-9


def worth_of_rest(rates: Mapping[int, float]) -> FloatArray:
    """Return the worth in milli of what is left of a card, by the milli left, 0 to 1000.

    *rates* says how often each size (in milli of one card) comes; a whole card is worth 1000.
    """
    sizes: dict[int, float] = {}
    for milli, rate in rates.items():
        if milli > 0 and rate > 0:
            slots = min(-(-milli // GRAIN), SLOTS)
            sizes[slots] = sizes.get(slots, 0.0) + rate
    if not sizes:
        return np.arange(WHOLE + 1, dtype=np.float64)
    slots_of = np.array(sorted(sizes), dtype=np.int64)
    prices = _prices(slots_of, np.array([sizes[s] for s in sorted(sizes)]))
    worth, _ = _fill(slots_of, prices)
    by_slot = worth * (WHOLE / worth[SLOTS])
    result: FloatArray = by_slot[np.arange(WHOLE + 1) // GRAIN]
    return result


def _prices(sizes: IntArray, rates: FloatArray) -> FloatArray:
    """Return the price of each size: the duals of covering *rates* with the fewest cards.

    The simplex over patterns: a pattern comes in as long as its sizes are together dearer than the
    card they take.
    """
    count = len(sizes)
    basis = np.diag((SLOTS // sizes).astype(np.float64))
    cards = rates / basis.diagonal()
    prices = np.ones(count) / basis.diagonal()
    for _ in range(ROUNDS):
        worth, last = _fill(sizes, prices)
        if worth[SLOTS] <= 1.0 + EPSILON:
            break
        pattern = _pattern(sizes, last)
        column = np.linalg.solve(basis, pattern)
        grows = column > EPSILON
        steps = np.where(grows, cards / np.where(grows, column, 1.0), np.inf)
        out = int(steps.argmin())
        step = steps[out]
        cards = np.maximum(cards - step * column, 0.0)
        cards[out] = step
        basis[:, out] = pattern
        prices = np.asarray(np.linalg.solve(basis.T, np.ones(count)), dtype=np.float64)
    return np.maximum(prices, 0.0)


def _fill(sizes: IntArray, prices: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return the dearest filling of each number of slots, and the size put in last (or -1)."""
    worth = np.zeros(SLOTS + 1)
    last = np.full(SLOTS + 1, -1, dtype=np.int64)
    for slots in range(1, SLOTS + 1):
        worth[slots] = worth[slots - 1]
        fitting = int(np.searchsorted(sizes, slots, side="right"))
        if not fitting:
            continue
        choices = worth[slots - sizes[:fitting]] + prices[:fitting]
        best = int(choices.argmax())
        if choices[best] > worth[slots] + EPSILON:
            worth[slots], last[slots] = choices[best], best
    return worth, last


def _pattern(sizes: IntArray, last: IntArray) -> FloatArray:
    pattern = np.zeros(len(sizes))
    slots = SLOTS
    while slots > 0:
        if last[slots] < 0:
            slots -= 1
        else:
            pattern[last[slots]] += 1
            slots -= int(sizes[last[slots]])
    return pattern
