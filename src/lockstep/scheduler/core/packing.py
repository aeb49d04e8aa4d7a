"""Packing members of several shapes into the nodes of one domain, exactly.

Sums over a domain over-promise: two shapes may each fit alone and not together. So a gang counts
as fitting only when every member has been given a node. A greedy packing answers most cases; where
it fails and there are several shapes, the set of all attainable member counts is built up node by
node (keeping only those not dominated), which is exact.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from lockstep.scheduler.core import spots
from lockstep.scheduler.core.dealing import left_after
from lockstep.scheduler.core.distinct import distinct
from lockstep.scheduler.core.fit import FloatArray, members_fit
from lockstep.scheduler.core.fronts import Fronts
from lockstep.scheduler.core.headroom import Division, Headroom, affordable, cut, parts_of, uneven
from lockstep.scheduler.core.labels import BoolArray
from lockstep.scheduler.core.nodes import IntArray
from lockstep.scheduler.core.pareto import FRONT_LIMIT, undominated
from lockstep.scheduler.core.shapes import PodShape

WORK_LIMIT = 4_000_000
"""Combinations looked at by one exact search before it gives up."""

Block = tuple[int, int]
"""The number of a tier, and how many members a domain of it takes at a time."""


@dataclass(frozen=True, slots=True)
class Item:
    """Members of one group that share a shape."""

    shape: PodShape
    group: int
    available: int


@dataclass(frozen=True, slots=True)
class Quota:
    """How many members of a group must and may be placed."""

    need: int
    want: int


@dataclass(slots=True)
class Ground:
    """The nodes to pack into: those of one domain."""

    table: IntArray
    """What is free by column and row of the node table."""
    rows: IntArray
    """The rows of the nodes."""
    room: list[IntArray]
    """For each item, how many of its members each node holds while nobody else comes."""
    eligible: list[BoolArray]
    """For each item, which of the nodes its members may stand on."""
    liking: list[FloatArray]
    rank: IntArray
    tiers: list[spots.Ids]
    """Domain numbers of the tiers inside the domain, widest first."""
    spread: bool = False
    tiers_of_policy: IntArray | None = None
    """For each node the tier of the unit's NodePolicy; lower ones are filled first."""
    blocks: list[tuple[spots.Ids, int] | None] = field(default_factory=list)
    """For each item the domains that take its members in blocks only, and their size."""
    headroom: Sequence[Headroom] = ()
    """What may be used of resources that are limited."""

    def free(self, nodes: IntArray | None = None) -> IntArray:
        """Return what the nodes, or some of them, have free, by column and node."""
        return self.table[:, self.rows if nodes is None else self.rows[nodes]]


@dataclass(slots=True)
class Packing:
    """How many members of each item go to each node of the ground."""

    counts: IntArray
    exact: bool = True
    """False when the search gave up: a packing may then exist although none was found."""
    placed: IntArray = field(init=False)

    def __post_init__(self) -> None:
        self.placed = self.counts.sum(axis=1)

    def satisfies(self, items: Sequence[Item], quotas: Sequence[Quota]) -> bool:
        """Return whether every group has the members that it needs."""
        return not any(self.short(items, quotas))

    def short(self, items: Sequence[Item], quotas: Sequence[Quota]) -> list[int]:
        """Return for each group how many of the members that it needs have no place."""
        placed = [0] * len(quotas)
        for item, number in zip(items, self.placed, strict=True):
            placed[item.group] += int(number)
        return [max(0, quota.need - got) for quota, got in zip(quotas, placed, strict=True)]


def pack(
    items: Sequence[Item], quotas: Sequence[Quota], ground: Ground, *, exactly: bool = True
) -> Packing:
    """Return a packing that holds what every group needs, and what they want where it fits.

    When there is none, the returned packing is the fullest one found and does not satisfy. Without
    *exactly* only the quick way is tried, which may miss one.
    """
    greedy = _Greedy(items, ground)
    greedy.place(_targets(items, [quota.need for quota in quotas]))
    packing = Packing(greedy.counts)
    if not packing.satisfies(items, quotas):
        simple = (len(items) == 1 and not uneven(ground.headroom)) or any(ground.blocks)
        if simple or not exactly or _exceeds(items, quotas, ground):
            return packing
        exact = _Attainable(items, quotas, ground).search()
        packing.exact = exact.exact
        if exact.placed.sum() <= packing.placed.sum() and not exact.satisfies(items, quotas):
            return packing
        packing = _trim(exact, items, quotas)
        if not packing.satisfies(items, quotas):
            return packing
    extras = _extras(items, quotas, packing)
    if not any(extras):
        return packing
    greedy = _Greedy(items, ground, packing.counts)
    greedy.place(extras)
    return Packing(greedy.counts, packing.exact)


def _exceeds(items: Sequence[Item], quotas: Sequence[Quota], ground: Ground) -> bool:
    """Return whether the groups together need more of some resource than there is in all."""
    open_to = np.logical_or.reduce(ground.eligible)
    for column in {int(c) for item in items for c in item.shape.columns}:
        needed = 0
        for group, quota in enumerate(quotas):
            amounts = [(i.shape.amount(column), i.available) for i in items if i.group == group]
            left = quota.need
            for amount, available in sorted(amounts):  # the least that the group can do with
                needed += amount * min(left, available)
                left -= min(left, available)
        if needed > int(np.maximum(ground.table[column, ground.rows], 0)[open_to].sum()):
            return True
    return False


def _trim(packing: Packing, items: Sequence[Item], quotas: Sequence[Quota]) -> Packing:
    """Take out what was placed beyond what a group wants."""
    counts = packing.counts.copy()
    for group, quota in enumerate(quotas):
        numbers = [number for number, item in enumerate(items) if item.group == group]
        surplus = int(counts[numbers].sum()) - quota.want
        for number in reversed(numbers):
            for node in reversed(np.flatnonzero(counts[number])):
                drop = min(surplus, int(counts[number, node]))
                if drop <= 0:
                    break
                counts[number, node] -= drop
                surplus -= drop
    return Packing(counts, packing.exact)


def _targets(items: Sequence[Item], per_group: Sequence[int]) -> list[int]:
    left = list(per_group)
    targets = []
    for item in items:
        share = min(item.available, left[item.group])
        left[item.group] -= share
        targets.append(share)
    return targets


def _extras(items: Sequence[Item], quotas: Sequence[Quota], packing: Packing) -> list[int]:
    left = [quota.want for quota in quotas]
    for item, number in zip(items, packing.placed, strict=True):
        left[item.group] -= int(number)
    extras = []
    for item, number in zip(items, packing.placed, strict=True):
        share = max(0, min(item.available - int(number), left[item.group]))
        left[item.group] -= share
        extras.append(share)
    return extras


class _Greedy:
    """Places one item after the other, the largest pods first, and never moves any."""

    def __init__(
        self, items: Sequence[Item], ground: Ground, counts: IntArray | None = None
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
        """Yield the nodes tier by tier of the unit's policy; None stands for all at once."""
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
            fit = spots.whole_blocks(fit, *block)
        wanted = min(target, int(fit.sum()))
        if block is not None:
            wanted -= wanted % block[1]
        if wanted == 0:
            return np.zeros_like(fit)
        room = spots.Room(fit, ground.liking[number], ground.rank)
        if ground.spread and block is None:
            return spots.spread(room, wanted)
        talking = target > 1 and shape.gpus > 0
        return spots.binpack(room, ground.tiers, wanted, largest_first=talking)

    def _allowed(self, number: int, chosen: IntArray) -> IntArray:
        """Return the members chosen as far as limits allow them, on the best liked nodes first."""
        ground = self._ground
        if not ground.headroom:
            return chosen
        nodes = np.flatnonzero(chosen)
        order = nodes[np.lexsort((ground.rank[nodes], -ground.liking[number][nodes]))]
        taken = cut(ground.headroom, self._left, number, chosen, order)
        block = ground.blocks[number] if ground.blocks else None
        return taken if block is None else spots.whole_blocks(taken, *block)

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


class _Attainable:
    """The exact search: which member counts can be attained on the first nodes, then on more.

    Where limits count by node, members of an item on nodes of each class are counted apart.
    """

    def __init__(self, items: Sequence[Item], quotas: Sequence[Quota], ground: Ground) -> None:
        self._items = items
        self._quotas = quotas
        self._ground = ground
        asked = [(item.group, item.available) for item in items]
        self._parts = parts_of(asked, ground.eligible, ground.headroom)
        self._most = np.array([part.most for part in self._parts], dtype=np.int64)
        split = [replace(items[part.item], available=part.most) for part in self._parts]
        self._fronts = Fronts(split, ground.free(), [part.open_to for part in self._parts])
        self._division = Division(
            self._parts,
            [item.available for item in items],
            [quota.need for quota in quotas],
            [one.amount for one in ground.headroom],
        )

    def search(self) -> Packing:
        """Return the fullest packing; it satisfies whenever any does and the limits were kept."""
        if not self._parts:
            return Packing(np.zeros((len(self._items), len(self._ground.rows)), dtype=np.int64))
        reached: IntArray = np.zeros((1, len(self._parts)), dtype=np.int64)
        steps: list[tuple[int, IntArray, IntArray]] = []  # node, previous state, own counts
        work, exact = 0, True
        found = None
        for node in range(len(self._ground.rows)):
            front = self._fronts.of(node)
            if front is None:
                exact = False
                continue
            if not front.any():
                continue
            work += len(reached) * len(front)
            if work > WORK_LIMIT or len(reached) > FRONT_LIMIT:
                exact = False
                break
            sums = np.minimum(reached[:, None] + front[None], self._most).reshape(
                -1, len(self._parts)
            )
            kept = undominated(sums)
            reached = sums[kept]
            steps.append((node, kept // len(front), front[kept % len(front)]))
            found = self._enough(reached)
            if found is not None:
                break
        exact = exact and self._fronts.exact and self._division.exact
        return Packing(self._counts(steps, reached, found), exact)

    def _short(self, reached: IntArray) -> IntArray:
        """Return by state how many members the groups are short of, limits left aside."""
        short = np.zeros(len(reached), dtype=np.int64)
        for group, quota in enumerate(self._quotas):
            held = np.zeros(len(reached), dtype=np.int64)
            for number, item in enumerate(self._items):
                if item.group == group:
                    own = [p for p, part in enumerate(self._parts) if part.item == number]
                    held += np.minimum(reached[:, own].sum(axis=1), item.available)
            short += np.maximum(quota.need - held, 0)
        return short

    def _enough(self, reached: IntArray) -> tuple[int, list[int]] | None:
        """Return a state that holds what is needed, and how many members of each part to take."""
        enough = np.flatnonzero(self._short(reached) == 0)
        for state in enough[np.argsort(-reached[enough].sum(axis=1), kind="stable")]:
            most = reached[state].tolist()
            taken = self._division.within(most) if self._ground.headroom else most
            if taken is not None:
                return int(state), taken
        return None

    def _counts(
        self,
        steps: list[tuple[int, IntArray, IntArray]],
        reached: IntArray,
        found: tuple[int, list[int]] | None,
    ) -> IntArray:
        """Return by item and node how many members the state found has, else the fullest one."""
        counts = np.zeros((len(self._items), len(self._ground.rows)), dtype=np.int64)
        if found is None:
            if self._ground.headroom:
                return counts
            order = np.lexsort((-reached.sum(axis=1), self._short(reached)))
            found = int(order[0]), self._most.tolist()
        state, most = found
        own_counts = np.zeros((len(self._parts), counts.shape[1]), dtype=np.int64)
        for node, previous, own in reversed(steps):
            own_counts[:, node] = own[state]
            state = int(previous[state])
        # States are clipped at what is available; so is what they are made of.
        for part, limit, taken in zip(self._parts, most, own_counts, strict=True):
            counts[part.item] += np.clip(limit - (np.cumsum(taken) - taken), 0, taken)
        return counts
