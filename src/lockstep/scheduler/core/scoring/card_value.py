"""What the rest of a shared card is worth to the shares that usually come.

Filling cards with shares is cutting stock: sizes come at known rates, and the fewest cards that
hold them all give each size a price, the part of a card that one of it is worth in the best mix
(Gilmore and Gomory). A size that fits into what others must leave over is worth nothing: 160 beside
an 810. The rest of a card is worth the dearest sizes that still fit on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from lockstep.scheduler.core.scoring.gpu_milli import WHOLE
from lockstep.scheduler.core.util.array_types import FloatArray, IntArray

GRAIN = 10
"""Milli in which cards are cut here; sizes are rounded up to it."""
SLOTS = WHOLE // GRAIN
ROUNDS = 400
"""Patterns tried at most; a few dozen are enough as a rule."""
EPSILON = 1e-9
PIVOT = 1e-7
"""The smallest change by which a column may leave: a smaller one is rounding."""
SURPLUS = 0.35
"""How much of each size comes for the gaps, beside what fills the cards up to then."""


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
    """Return the price of each size, from covering *rates* with the fewest cards.

    What comes when the cards are full may fill their gaps: of each size so much as ``SURPLUS``
    says, worth what it weighs. The simplex over patterns, each a way to fill one card with sizes
    that must be placed and sizes that may be: one comes in as long as it is dearer than a card.
    """
    count = len(sizes)
    program = _Program(
        basis=np.diag(np.concatenate([SLOTS // sizes, np.ones(count)])),
        costs=np.concatenate([np.ones(count), np.zeros(count)]),
        amounts=np.concatenate([rates / (SLOTS // sizes), rates * SURPLUS]),
    )
    weights = sizes / SLOTS
    prices = np.zeros(count)
    for _ in range(ROUNDS):
        duals = program.duals()
        must, may = duals[:count], weights + duals[count:]
        prices = np.maximum(np.maximum(must, may), 0.0)
        spare = _spare(duals, count)
        if spare is not None:
            if not program.enter(spare, 0.0):
                break
            continue
        worth, last = _fill(sizes, prices)
        if worth[SLOTS] <= 1.0 + EPSILON:
            break
        pattern = _pattern(sizes, last)
        filler = may > must
        column = np.concatenate([np.where(filler, 0.0, pattern), np.where(filler, pattern, 0.0)])
        if not program.enter(column, 1.0 - float((pattern * weights)[filler].sum())):
            break
    return prices


@dataclass(slots=True)
class _Program:
    """A linear program at one of its corners: columns, their costs, how much of each is taken."""

    basis: FloatArray
    costs: FloatArray
    amounts: FloatArray

    def duals(self) -> FloatArray:
        return np.asarray(np.linalg.solve(self.basis.T, self.costs), dtype=np.float64)

    def enter(self, column: FloatArray, cost: float) -> bool:
        """Take in a column, and out the one that is used up first; False when there is none."""
        change = np.linalg.solve(self.basis, column)
        grows = change > PIVOT
        if not grows.any():
            return False
        steps = np.where(grows, self.amounts / np.where(grows, change, 1.0), np.inf)
        out = int(steps.argmin())
        self.amounts = np.maximum(self.amounts - steps[out] * change, 0.0)
        self.amounts[out] = steps[out]
        self.basis[:, out] = column
        self.costs[out] = cost
        return True


def _spare(duals: FloatArray, count: int) -> FloatArray | None:
    """Return the column that covers more than must be, or fills less than may be, if it pays."""
    gains = np.concatenate([-duals[:count], duals[count:]])
    best = int(gains.argmax())
    if gains[best] <= EPSILON:
        return None
    column = np.zeros(2 * count)
    column[best] = -1.0 if best < count else 1.0
    return column


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
