"""How much may still be used of what is limited, where pods count by the node that they go to.

The GPUs of a model are used up by the pods on its nodes alone, and a share by memory is a larger
part of a smaller card. So nodes on which pods count alike form a class, and a workload may have to
be divided between classes: so many members here, so many there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lockstep.scheduler.core.util.array_types import BoolArray, IntArray

STEPS_LIMIT = 50_000
"""Choices looked at by one division before it gives up."""


@dataclass(frozen=True, slots=True, eq=False)
class Headroom:
    """What is left of one limited resource."""

    resource: str
    amount: int
    """The most that the workload may use of it, in the workloads of the queues' accounts."""
    costs: IntArray
    """``[item, node]``: what one member counts for there."""

    def at(self, rows: IntArray) -> Headroom:
        """Return the same for some nodes, in their order."""
        return Headroom(self.resource, self.amount, self.costs[:, rows])

    def left(self, counts: IntArray) -> int:
        """Return what is left with so many members of each item on each node."""
        return self.amount - int((self.costs * counts).sum())


def uneven(headroom: Sequence[Headroom]) -> bool:
    """Return whether it matters for a limit on which of the nodes that it counts a member goes."""
    paid = [costs[costs > 0] for one in headroom for costs in one.costs]
    return any(len(costs) and costs.min() != costs.max() for costs in paid)


def affordable(headroom: Sequence[Headroom], left: Sequence[int], item: int) -> BoolArray:
    """Return the nodes on which one more member of an item stays within what is *left*."""
    nodes = headroom[0].costs.shape[1]
    passes = np.ones(nodes, dtype=bool)
    for one, amount in zip(headroom, left, strict=True):
        passes &= one.costs[item] <= amount
    return passes


def cut(
    headroom: Sequence[Headroom],
    left: Sequence[int],
    item: int,
    taken: IntArray,
    order: IntArray,
) -> IntArray:
    """Return how many of the members *taken* stay within what is left, the first in *order* of
    them.
    """
    kept = taken[order]
    for one, amount in zip(headroom, left, strict=True):
        cost = one.costs[item][order]
        own = cost * taken[order]
        rest = np.maximum(amount - (np.cumsum(own) - own), 0)
        kept = np.where(cost > 0, np.minimum(kept, rest // np.maximum(cost, 1)), kept)
    found = np.zeros_like(taken)
    found[order] = kept
    return found


@dataclass(frozen=True, slots=True)
class ItemPart:
    """The members of an item that go to nodes of one class."""

    item: int
    group: int
    open_to: BoolArray
    most: int
    costs: tuple[int, ...]
    """What one of them counts for, by limited resource."""


def parts_of(
    items: Sequence[tuple[int, int]], eligible: Sequence[BoolArray], headroom: Sequence[Headroom]
) -> list[ItemPart]:
    """Return the items by classes of nodes; *items* are groups and numbers of members."""
    if not headroom:
        return [
            ItemPart(number, group, mask, available, ())
            for number, ((group, available), mask) in enumerate(zip(items, eligible, strict=True))
        ]
    costs = np.stack([one.costs for one in headroom])  # [resource, item, node]
    found = []
    for number, (group, available) in enumerate(items):
        kinds, own = np.unique(costs[:, number], axis=1, return_inverse=True)
        for kind, paid in enumerate(kinds.T.tolist()):
            rooms = [h.amount // cost for h, cost in zip(headroom, paid, strict=True) if cost]
            most, mask = min([available, *rooms]), eligible[number] & (own.ravel() == kind)
            if most > 0 and mask.any():
                found.append(ItemPart(number, group, mask, most, tuple(paid)))
    return found


class Division:
    """Divides members between the parts that can hold them so that all limits are kept."""

    def __init__(
        self,
        parts: Sequence[ItemPart],
        available: Sequence[int],
        needs: Sequence[int],
        amounts: Sequence[int],
    ) -> None:
        """*available* is by item, *needs* by group, *amounts* by limited resource."""
        self._parts = parts
        self._available = tuple(available)
        self._needs = tuple(needs)
        self._amounts = tuple(amounts)
        # What costs nothing first, so that it is used up before anything else is looked at.
        self._order = sorted(
            range(len(parts)), key=lambda p: (parts[p].group, any(parts[p].costs), parts[p].costs)
        )
        self.exact = True
        """False once it gave up: there may be a division although none was found."""
        self._dead: set[tuple[object, ...]] = set()
        self._steps = 0

    def within(self, most: Sequence[int]) -> list[int] | None:
        """Return by part how many members go there, *most* as many as that; None if it cannot be.

        Every group gets just what it needs.
        """
        self._dead.clear()
        self._steps = 0
        chosen = self._fill(0, tuple(most), self._needs, self._amounts, self._available)
        if chosen is None:
            return None
        found = [0] * len(self._parts)
        for number, count in zip(self._order, chosen, strict=True):
            found[number] = count
        return found

    def _fill(
        self,
        place: int,
        most: tuple[int, ...],
        needs: tuple[int, ...],
        left: tuple[int, ...],
        available: tuple[int, ...],
    ) -> tuple[int, ...] | None:
        if place == len(self._order):
            return None if any(needs) else ()
        key = (place, needs, left, available)
        if key in self._dead:
            return None
        self._steps += 1
        if self._steps > STEPS_LIMIT:
            self.exact = False
            return None
        part = self._parts[self._order[place]]
        room = self._room(self._order[place], most, left)
        here = min(room, needs[part.group], available[part.item])
        later = [p for p in self._order[place + 1 :] if self._parts[p].group == part.group]
        least = max(0, needs[part.group] - sum(self._room(p, most, left) for p in later))
        if not any(part.costs):
            least = max(least, here)
        for count in range(here, least - 1, -1):
            rest = self._fill(
                place + 1,
                most,
                _less(needs, part.group, count),
                tuple(a - c * count for a, c in zip(left, part.costs, strict=True)),
                _less(available, part.item, count),
            )
            if rest is not None:
                return (count, *rest)
        self._dead.add(key)
        return None

    def _room(self, number: int, most: Sequence[int], left: Sequence[int]) -> int:
        costs = self._parts[number].costs
        rooms = [a // cost for a, cost in zip(left, costs, strict=True) if cost]
        return min([most[number], *rooms])


def _less(amounts: tuple[int, ...], place: int, by: int) -> tuple[int, ...]:
    return (*amounts[:place], amounts[place] - by, *amounts[place + 1 :])
