"""Where the units of a job should stand so that its ranks wait for the network least.

Groups are poured block by block into the domains of the tiers, in several orders of the axes, and
the best outcome is then improved by swapping units. Every step is counted, not timed, so equal
input gives an equal layout on any machine.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, permutations, product
from typing import NamedTuple

import numpy as np

from lockstep.scheduler.core.ranks.communication_cost import Links, Talk, cost, tier_cost
from lockstep.scheduler.core.util.array_types import BoolArray, FloatArray, IntArray
from lockstep.scheduler.core.util.unique import distinct, numbered

POURED = 3072
"""Units poured in all before the best outcome so far has to do."""
SCANS = 400
"""Units whose best swap is looked for, for each start; a scan of few units costs least."""
SCANNED = 10_000
"""Swaps weighed in all."""
KICKS = 6
"""Random disturbances from which a better layout is looked for, where there are few units."""
PULL = 0.2
"""What drawing a group together counts, beside what it costs to be apart."""
FEW_UNITS = 48
"""Up to so many units the search goes on after its first local optimum."""


class Way(NamedTuple):
    """How blocks are given to domains."""

    stays: bool
    """Whether the next block goes where the last one went, as long as there is room."""
    roomiest: bool
    """Whether what was split goes to the roomiest domain, and not to the tightest."""


WAYS = (Way(True, False), Way(True, True), Way(False, False))


@dataclass(frozen=True, slots=True)
class Slots:
    """Places for units: the domain of each by tier, and which units it takes."""

    ids: IntArray
    """``[tier, slot]``, widest tier first; a domain of a narrower tier lies in one wider domain."""
    kind: IntArray
    """Units stand only on slots of their own kind."""


@dataclass(frozen=True, slots=True)
class Task:
    """What has to be laid out."""

    talk: Talk
    kind: IntArray
    keys: Sequence[IntArray]
    """Coordinates of the units along the axes by which they may be grouped in blocks."""
    slots: Slots
    links: Links
    start: IntArray
    """By unit the slot it stands on when nothing is done."""
    fixed: BoolArray
    """Units that stand already and stay."""


def lay_out(task: Task, seed: int = 0) -> IntArray:
    """Return by unit the slot it should stand on; never worse than *task*'s start."""
    if not task.talk.edges or task.fixed.all():
        return task.start
    best, least = task.start, _cost(task, task.start)
    floor = lower_bound(task)
    starts: list[tuple[float, IntArray]] = [(least, best)]
    for place in _poured(task):
        seconds = _cost(task, place)
        starts.append((seconds, place))
        if seconds <= floor * (1 + 1e-9):
            return place
    starts.sort(key=lambda one: one[0])
    budget = SCANNED // len(task.slots.kind)
    few = task.talk.units <= FEW_UNITS
    for _, begun in starts[: 3 if few else 1]:
        climber = Climber(task, begun)
        if few:
            budget -= climber.climb(min(budget, SCANS), PULL)
        budget -= climber.climb(min(budget, SCANS))
        if climber.seconds < least:
            best, least = climber.place_of_units().copy(), climber.seconds
    if few and least > floor * (1 + 1e-9):
        best = _kicked(task, best, np.random.default_rng(seed))
    return best


def lower_bound(task: Task) -> float:
    """Return seconds that no layout undercuts: every group on its own as close as it can be."""
    talk, links = task.talk, task.links
    seconds = talk.inside * float(links.slowness[-1])
    for level, step in enumerate(links.surcharge):
        room = np.sort(np.bincount(task.slots.ids[level]))[::-1]
        reach = np.cumsum(room)
        fewest = np.searchsorted(reach, talk.sizes) + 1
        seconds += tier_cost(talk, fewest, float(step), float(links.hop[level])).sum()
    return float(seconds)


def _cost(task: Task, place: IntArray) -> float:
    return cost(task.talk, task.slots.ids[:, place], task.links)


def _poured(task: Task) -> Iterator[IntArray]:
    """Yield different layouts made of whole blocks, by one order of the axes and way each."""
    axes = _axes(task.keys)
    tiers = [level for level in range(len(task.slots.ids)) if _divides(task.slots, level)]
    ways = product(range(len(tiers) or 1), WAYS, permutations(axes))
    seen: set[bytes] = set()
    for skipped, way, order in islice(ways, max(6, POURED // max(1, task.talk.units))):
        place = task.start.copy()
        pour = _Pour(task.slots.ids[tiers[skipped:]], order, way)
        for kind in distinct(task.kind[~task.fixed]):
            units = np.flatnonzero((task.kind == kind) & ~task.fixed)
            slots = np.flatnonzero(task.slots.kind == kind)
            pour.pour(units, slots[~np.isin(slots, task.start[task.fixed])], place)
        if place.tobytes() not in seen:
            seen.add(place.tobytes())
            yield place


def _axes(keys: Sequence[IntArray]) -> list[IntArray]:
    """Return the axes along which units differ, each way of telling them apart once."""
    found: list[IntArray] = []
    for key in keys:
        if key.max(initial=0) > 0 and not any((key == other).all() for other in found):
            found.append(key)
    return found


def _divides(slots: Slots, level: int) -> bool:
    """Return whether a tier has several domains and some of them several slots."""
    domains = len(distinct(slots.ids[level]))
    return 1 < domains < len(slots.kind)


class _Pour:
    """Gives whole blocks of units to domains, and splits those that none holds."""

    def __init__(self, ids: IntArray, axes: Sequence[IntArray], way: Way) -> None:
        self._ids = ids
        self._axes = axes
        self._way = way

    def pour(self, units: IntArray, slots: IntArray, place: IntArray) -> None:
        """Write into *place* the slot of each of *units*."""
        order = np.lexsort((units, *(axis[units] for axis in reversed(self._axes))))
        self._fill(0, units[order], slots, place)

    def _fill(self, level: int, units: IntArray, slots: IntArray, place: IntArray) -> None:
        if level == len(self._ids):
            place[units] = slots[: len(units)]
            return
        ids = self._ids[level, slots]
        by_domain = {int(domain): slots[ids == domain] for domain in distinct(ids)}
        for domain, taken in self._share(units, by_domain).items():
            self._fill(level + 1, taken, by_domain[domain], place)

    def _share(self, units: IntArray, by_domain: dict[int, IntArray]) -> dict[int, IntArray]:
        """Return which units go to which domain."""
        left = {domain: len(slots) for domain, slots in by_domain.items()}
        given: dict[int, list[IntArray]] = {domain: [] for domain in by_domain}
        waiting: deque[tuple[IntArray, int]] = deque([(units, 0)])
        here, split = -1, False
        while waiting:
            block, depth = waiting.popleft()
            if not (self._way.stays and left.get(here, 0) >= len(block)):
                holding = [domain for domain, room in left.items() if room >= len(block)]
                if not holding:
                    waiting.extendleft(reversed(self._parts(block, depth)))
                    split = True
                    continue
                roomy = split and self._way.roomiest
                here = min(holding, key=lambda d: -left[d] if roomy else left[d])
            given[here].append(block)
            left[here] -= len(block)
        return {d: np.concatenate(blocks) for d, blocks in given.items() if blocks}

    def _parts(self, block: IntArray, depth: int) -> list[tuple[IntArray, int]]:
        """Return the blocks that a block consists of, by the first axis along which it differs."""
        while depth < len(self._axes):
            cuts = np.flatnonzero(np.diff(self._axes[depth][block])) + 1
            depth += 1
            if len(cuts):
                return [(part, depth) for part in np.split(block, cuts)]
        return [(block[i : i + 1], depth) for i in range(len(block))]


class Climber:
    """A layout that is improved by swapping two units, or by moving one to a slot left over."""

    def __init__(self, task: Task, place: IntArray) -> None:
        self._talk, self._links = task.talk, task.links
        left = np.ones(len(task.slots.kind), dtype=bool)
        left[place] = False
        spare = np.flatnonzero(left)
        units = task.talk.units
        self.place = np.concatenate([place, spare])
        """By unit its slot; slots left over hold units that talk to no other."""
        self._units = units
        self._kind = task.slots.kind[self.place]
        self._free = np.concatenate([~task.fixed, np.ones(len(spare), dtype=bool)])
        none = len(task.talk.edges)
        width = task.talk.of_unit.shape[1]
        idle = np.full((len(spare), width), none, dtype=np.int64)
        self._of = np.concatenate([task.talk.of_unit, idle])
        # A tier that has all slots in one domain, or each in its own, is the same for all layouts.
        self._tiers = [
            (level, numbered(ids)[1])
            for level, ids in enumerate(task.slots.ids)
            if 1 < len(distinct(ids)) < len(task.slots.kind)
        ]
        self._count = [self._counted(ids) for _, ids in self._tiers]
        self._task = task
        self.seconds = _cost(task, place)

    def _counted(self, ids: IntArray) -> IntArray:
        number, unit = self._talk.pairs
        count = np.zeros((len(self._talk.edges) + 1, int(ids.max()) + 1), dtype=np.int64)
        np.add.at(count, (number, ids[self.place[unit]]), 1)
        return count

    def climb(self, budget: int, pull: float = 0.0) -> int:
        """Swap while that helps, within so many scans; return how many were made.

        A group that is spread evenly costs what one costs that is nearly whole; with a *pull*,
        a small part of its cost, steps from the one towards the other count as helping.
        """
        turn = [int(unit) for unit in self._dearest() if self._free[unit]]
        scans = quiet = 0
        while scans < budget and quiet < len(turn):
            unit = turn[scans % len(turn)]
            scans, quiet = scans + 1, quiet + 1
            gains = self._gains(unit, pull)
            other = int(np.argmin(gains))
            if gains[other] < -1e-12 * self.seconds:
                self.swap(unit, other)
                quiet = 0
        self.seconds = _cost(self._task, self.place_of_units())
        return scans

    def _dearest(self) -> IntArray:
        """Return the units by what their groups pay for crossing tiers, the most first."""
        paid: FloatArray = np.zeros(self._units)
        for (level, _), count in zip(self._tiers, self._count, strict=True):
            step, hop = float(self._links.surcharge[level]), float(self._links.hop[level])
            seconds = tier_cost(self._talk, (count > 0).sum(axis=1), step, hop)
            paid += seconds[self._of[: self._units]].sum(axis=1)
        return np.argsort(-paid, kind="stable")

    def place_of_units(self) -> IntArray:
        """Return by unit its slot, without those that hold none."""
        return self.place[: self._units]

    def swap(self, one: int, other: int) -> None:
        """Let two units change places."""
        for (_, ids), count in zip(self._tiers, self._count, strict=True):
            here, there = ids[self.place[one]], ids[self.place[other]]
            for unit, sign in ((one, 1), (other, -1)):
                np.add.at(count, (self._of[unit], here), -sign)
                np.add.at(count, (self._of[unit], there), sign)
        self.place[[one, other]] = self.place[[other, one]]

    def _gains(self, unit: int, pull: float) -> FloatArray:
        """Return what the cost changes by when a unit swaps places with each other one."""
        own = self._of[unit]
        shared = self._of[:, :, None] == own[None, None, :]
        both, mine = shared.any(axis=2), shared.any(axis=1)
        gains: FloatArray = np.zeros(len(self.place))
        for (level, ids), count in zip(self._tiers, self._count, strict=True):
            domain = ids[self.place]
            here = domain[unit]
            apart = domain != here
            touched = (count > 0).sum(axis=1)
            step = float(self._links.surcharge[level])
            hop = float(self._links.hop[level])
            # I go there: my groups may leave here and may come to be there.
            leaves = count[own, here] == 1
            comes = count[own][:, domain].T == 0
            change = self._change(own, touched[own], comes.astype(np.int64) - leaves, step, hop)
            if pull:
                change += self._drawn(own, count[own, here] - count[own][:, domain].T, pull * step)
            gains += apart * np.where(mine, 0.0, change).sum(axis=1)
            # The other comes here, likewise.
            leaves = count[self._of, domain[:, None]] == 1
            comes = count[self._of, here] == 0
            grown = comes.astype(np.int64) - leaves
            change = self._change(self._of, touched[self._of], grown, step, hop)
            if pull:
                from_there = count[self._of, domain[:, None]] - count[self._of, here]
                change += self._drawn(self._of, from_there, pull * step)
            gains += apart * np.where(both, 0.0, change).sum(axis=1)
        gains[~self._free | (self._kind != self._kind[unit])] = 0.0
        return gains

    def _change(
        self, groups: IntArray, touched: IntArray, grown: IntArray, step: float, hop: float
    ) -> FloatArray:
        volume, calls = self._talk.volume[groups] * step, self._talk.calls[groups] * hop
        after = touched + grown
        before: FloatArray = (touched > 1) * (volume + calls * touched)
        return (after > 1) * (volume + calls * after) - before

    def _drawn(self, groups: IntArray, more: IntArray, pull: float) -> FloatArray:
        """Return what leaving a domain counts for where a group has so many *more* units."""
        found: FloatArray = (more - 1) * self._talk.volume[groups] * pull
        return found / np.maximum(self._talk.sizes[groups], 1)


def _kicked(task: Task, best: IntArray, chance: np.random.Generator) -> IntArray:
    """Return the best layout found by disturbing the present one again and again."""
    least = _cost(task, best)
    movable = np.flatnonzero(~task.fixed)
    open_to = task.slots.kind.copy()
    open_to[task.start[task.fixed]] = -1
    for kick in range(KICKS):
        place = best.copy()
        for _ in range(2 + kick % 3):
            one = int(chance.choice(movable))
            slot = int(chance.choice(np.flatnonzero(open_to == task.kind[one])))
            place[place == slot] = place[one]
            place[one] = slot
        climber = Climber(task, place)
        climber.climb(SCANS, PULL)
        climber.climb(SCANS)
        if climber.seconds < least * (1 - 1e-12):
            best, least = climber.place_of_units().copy(), climber.seconds
    return best
