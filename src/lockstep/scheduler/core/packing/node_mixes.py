"""How many members of each shape one node holds together: all mixes that none exceeds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from lockstep.scheduler.core.model.pod_shape import PodShape
from lockstep.scheduler.core.resources.columns import Columns
from lockstep.scheduler.core.resources.exact_device_fit import (
    WAYS,
    Left,
    SearchBudget,
    exact_fit,
    left_of,
)
from lockstep.scheduler.core.resources.gpu_shares import GpuShare, hold_whole
from lockstep.scheduler.core.resources.share_packing import holds
from lockstep.scheduler.core.scoring.feasibility import members_fit
from lockstep.scheduler.core.util.array_types import BoolArray, IntArray
from lockstep.scheduler.core.util.pareto import FRONT_LIMIT, undominated

NODES = 5
"""Nodes whose ways are gone through to the end in one search; the rest then promise less."""


class AvailableShape(Protocol):
    """Members of a shape, and how many there are."""

    @property
    def shape(self) -> PodShape:
        """Return what each of them takes."""

    @property
    def available(self) -> int:
        """Return how many there are."""


class NodeMixes:
    """The mixes of each node of one search; nodes with the same left are worked out once."""

    def __init__(
        self, items: Sequence[AvailableShape], free: IntArray, eligible: Sequence[BoolArray]
    ) -> None:
        self._items = items
        self._free = free
        self._eligible = eligible
        self.exact = True
        """False once fewer members were promised somewhere than may fit."""
        self._ways = NODES * WAYS
        self._kinds = tuple(item.shape.kind for item in items)
        self._sharing = any(item.shape.share is not None for item in items)
        self._special = any(item.shape.goes_by_connections for item in items)
        columns = {int(c) for item in items for c in item.shape.columns}
        if self._sharing or self._special:
            columns.update(items[0].shape.table.device_ids)
        self._columns = sorted(columns)
        self._known: dict[tuple[int, ...], IntArray | None] = {}

    def of(self, node: int) -> IntArray | None:
        """Return the undominated member counts of one node; None when there are too many."""
        free = self._free[:, node]
        allowed = tuple(bool(e[node]) for e in self._eligible)
        key = (*(int(free[c]) for c in self._columns), *allowed)
        if key not in self._known:
            found = self._enumerate(free, allowed)
            if found is not None:
                found = found[undominated(found)]
            self._known[key] = None if found is None or len(found) > FRONT_LIMIT else found
        return self._known[key]

    def _enumerate(self, free: IntArray, allowed: tuple[bool, ...]) -> IntArray | None:
        patience = SearchBudget(min(WAYS, self._ways))
        left = None
        if self._special:
            left = left_of(free, self._kinds, self._items[0].shape.table)
        partial: list[tuple[tuple[int, ...], IntArray]] = [((), free)]
        last = len(self._items) - 1
        for number, item in enumerate(self._items):
            grown: list[tuple[tuple[int, ...], IntArray]] = []
            for counts, rest in partial:
                fit = int(members_fit(rest[:, None], item.shape)[0]) if allowed[number] else 0
                most: int | None = min(fit, item.available)
                if left is not None:
                    most = self._aligned(left, counts, most or 0, patience)
                elif self._sharing:
                    most = self._beside(free, counts, most or 0)
                if most is None:
                    return None
                for one in [most] if number == last else range(most + 1):
                    after = rest.copy()
                    after[item.shape.columns] -= item.shape.amounts * one
                    grown.append(((*counts, one), after))
            if len(grown) > FRONT_LIMIT * 8:
                return None
            partial = grown
        self._ways = max(0, self._ways - patience.used)
        self.exact &= patience.sure
        return np.array([counts for counts, _ in partial], dtype=np.int64)

    def _aligned(
        self, left: Left, counts: tuple[int, ...], fit: int, patience: SearchBudget
    ) -> int:
        """Return how many of the next item find their devices beside what is there."""
        beside = (*counts, *[0] * (len(self._items) - len(counts)))
        return exact_fit(self._kinds).most(left, beside, len(counts), fit, patience)

    def _beside(self, free: IntArray, counts: tuple[int, ...], fit: int) -> int | None:
        """Return how many of the next item the cards hold beside what is there, *fit* at most.

        None when that cannot be told.
        """
        least, most = 0, fit
        while least < most:
            one = (least + most + 1) // 2
            shares, whole, table = _asked(self._items, (*counts, one))
            left = free.copy()
            held: bool | None = whole <= int((left[table.card_ids["whole"]] > 0).sum())
            if held:
                hold_whole(left, whole, table)
                held = holds(left, shares, table)
            if held is None:
                return None
            least, most = (one, most) if held else (least, one - 1)
        return least


def _asked(
    items: Sequence[AvailableShape], counts: Sequence[int]
) -> tuple[list[GpuShare], int, Columns]:
    """Return the shares and the whole GPUs that so many members of the first items ask together."""
    shares: list[GpuShare] = []
    whole = 0
    for item, count in zip(items, counts, strict=False):
        whole += item.shape.gpus * count
        if item.shape.share is not None:
            shares += [item.shape.share] * count
    return shares, whole, items[0].shape.table
