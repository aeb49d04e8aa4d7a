"""The quick way to pack: one shape after the other, and no pod is moved again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from lockstep.scheduler.core.packing import node_selection
from lockstep.scheduler.core.packing.device_assignment import left_after
from lockstep.scheduler.core.packing.packing import DomainNodes, Item
from lockstep.scheduler.core.packing.quota_headroom import affordable, cut
from lockstep.scheduler.core.scoring.feasibility import members_fit
from lockstep.scheduler.core.util.array_types import BoolArray, IntArray
from lockstep.scheduler.core.util.unique import distinct


class Greedy:
    """Places one item after the other, the largest pods first, and never moves any."""

    def __init__(
        self, items: Sequence[Item], ground: DomainNodes, counts: IntArray | None = None
    ) -> None:
        self._items = items
        self._ground = ground
        shape = (len(items), len(ground.rows))
        self.counts: IntArray = np.zeros(shape, dtype=np.int64) if counts is None else counts.copy()
        self._spent: IntArray = np.zeros(shape, dtype=np.int64)
        """The members that are taken off what their nodes have free."""
        self._touched: IntArray = np.zeros(0, dtype=np.int64)
        self._free = ground.free(self._touched)
        """What the nodes that hold members have left."""
        self._left = [one.left(self.counts) for one in ground.headroom]

    def place(self, targets: Sequence[int]) -> None:
        """Place up to *targets* members of each item."""
        for number in sorted(range(len(targets)), key=self._size, reverse=True):
            left = targets[number]
            for open_to in self._in_order() if left else ():
                left -= self._place(number, left, open_to)

    def _size(self, number: int) -> tuple[int, ...]:
        request, share = self._items[number].shape.request, self._items[number].shape.share
        return (
            self._items[number].shape.gpus,
            share.cards * share.compute if share is not None else 0,
            share.cards * share.memory if share is not None else 0,
            request.get("cpu", 0),
            request.get("memory", 0),
            -number,
        )

    def _in_order(self) -> Iterator[BoolArray | None]:
        """Yield the nodes tier by tier of the workload's policy; None stands for all at once."""
        tiers = self._ground.tiers_of_policy
        if tiers is None:
            yield None
            return
        for tier in distinct(tiers):
            yield tiers == tier

    def _place(self, number: int, target: int, open_to: BoolArray | None) -> int:
        """Place up to *target* members of an item on some nodes; return how many found room."""
        placed = 0
        while placed < target:
            chosen = self._choose(number, target - placed, open_to)
            taken = self._allowed(number, chosen)
            self._take(number, taken)
            placed += int(taken.sum())
            # What is cut off at a limit is looked for once more, where the limit does not count.
            if not taken.any() or (taken == chosen).all():
                break
        return placed

    def _choose(self, number: int, target: int, open_to: BoolArray | None) -> IntArray:
        """Return which nodes take how many of *target* members, as far as there is room."""
        ground, shape = self._ground, self._items[number].shape
        fit = self._room(number)
        if open_to is not None:
            fit *= open_to
        if ground.headroom:
            fit *= affordable(ground.headroom, self._left, number)
        block = ground.blocks[number] if ground.blocks else None
        if block is not None:
            fit = node_selection.whole_blocks(fit, *block)
        wanted = min(target, int(fit.sum()))
        if block is not None:
            wanted -= wanted % block[1]
        if wanted == 0:
            return np.zeros_like(fit)
        room = node_selection.Room(fit, ground.liking[number], ground.rank)
        if ground.spread and block is None:
            return node_selection.spread(room, wanted)
        talking = target > 1 and shape.gpus > 0
        return node_selection.binpack(room, ground.tiers, wanted, largest_first=talking)

    def _allowed(self, number: int, chosen: IntArray) -> IntArray:
        """Return the members chosen as far as limits allow them, on the best liked nodes first."""
        ground = self._ground
        if not ground.headroom:
            return chosen
        nodes = np.flatnonzero(chosen)
        order = nodes[np.lexsort((ground.rank[nodes], -ground.liking[number][nodes]))]
        taken = cut(ground.headroom, self._left, number, chosen, order)
        block = ground.blocks[number] if ground.blocks else None
        return taken if block is None else node_selection.whole_blocks(taken, *block)

    def _take(self, number: int, taken: IntArray) -> None:
        self.counts[number] += taken
        self._left = [one.left(self.counts) for one in self._ground.headroom]

    def _room(self, number: int) -> IntArray:
        """Return how many more members of an item each node holds."""
        ground = self._ground
        fit: IntArray = ground.room[number] * ground.eligible[number]
        if (self.counts != self._spent).any():
            self._spend()
        if len(self._touched):
            there = members_fit(self._free, self._items[number].shape)
            fit[self._touched] = there * ground.eligible[number][self._touched]
        return fit

    def _spend(self) -> None:
        """Take from the nodes what members take that came since the last time."""
        before, self._touched = self._touched, np.flatnonzero(self.counts.any(axis=0))
        free = self._ground.free(self._touched)
        free[:, np.searchsorted(self._touched, before)] = self._free
        more = (self.counts - self._spent)[:, self._touched]
        self._free = left_after([item.shape for item in self._items], free, more)
        self._spent = self.counts.copy()
