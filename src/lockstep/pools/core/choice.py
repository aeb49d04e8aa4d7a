"""The cheapest nodes that let all of a gang start. Pure.

Sets of at most three pools are tried, the cheapest first. In each, one pool after the other, in
every order, is brought down to as few nodes as can be, by halving; of small numbers all mixtures
are tried that are only just enough.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations, product

import numpy as np

from lockstep.pools.core.offers import Offers, Slot, ways
from lockstep.pools.core.pool import Pool
from lockstep.scheduler.core.model.decisions import Placement
from lockstep.scheduler.core.model.workload import Workload
from lockstep.scheduler.core.placement import admission
from lockstep.scheduler.core.placement.problem import Problem
from lockstep.scheduler.core.resources import wording
from lockstep.scheduler.core.scoring.feasibility import eligible, members_fit
from lockstep.scheduler.core.state.cluster import Cluster
from lockstep.scheduler.core.util.array_types import IntArray

POOLS_MIXED = 3
"""Pools of which one gang's nodes may come."""
POOLS_TRIED = 6
"""Pools, the best ones, of which sets are made."""
WAYS_TRIED = 24
"""Ways of taking slots that are tried for one set of pools."""
WALKED = 24
"""Nodes that a set of pools may get for which all counts that are only just enough are tried."""

Score = tuple[int, float, float]
"""The last tier of the gang's NodePolicy that is used, what the nodes cost an hour, the seconds
until the last of them is there: less is better."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Nodes to get, and where the gang stands then."""

    score: Score
    slots: tuple[tuple[Pool, tuple[int, ...]], ...]
    placement: Placement


@dataclass(frozen=True, slots=True)
class Room:
    """What there is to choose from."""

    pools: Sequence[Pool]
    left: Mapping[str, int]
    """By pool how many more nodes may be got."""
    there: Sequence[Slot]
    """Slots that count as there: on their way, or got in this look."""
    taken: Mapping[str, Collection[int]]
    """By pool the slots got in this look."""


@dataclass(frozen=True, slots=True)
class _Offer:
    """What a pool can do for a gang."""

    pool: Pool
    free: Sequence[int]
    holds: tuple[int, ...]
    """By item how many members one of its nodes holds."""
    tier: int
    """In which tier of the gang's NodePolicy its nodes are."""
    capacity: IntArray
    """By column what one of its nodes offers."""

    def most(self, problem: Problem) -> int:
        """Return how many nodes are enough for all members that it may hold."""
        items = zip(problem.items, self.holds, strict=True)
        return sum(-(-item.available // holds) for item, holds in items if holds)


class Chooser:
    """Looks for nodes for one gang after the other."""

    def __init__(self, cluster: Cluster, offers: Offers) -> None:
        self._cluster = cluster
        self._offers = offers
        self._probes: dict[str, int] = {}
        """By pool a slot whose node stands for all of its nodes."""

    def choose(
        self, workload: Workload, problem: Problem, room: Room
    ) -> tuple[Choice | None, list[str]]:
        """Return the best choice, and of pools that hold nothing of the gang why not."""
        offered, why, left = [], [], room.left
        for pool in room.pools:
            free = [slot for slot in pool.free_slots() if slot not in room.taken[pool.name]]
            found = self._offer(pool, free, problem)
            if any(found.holds):
                offered.append(found)
            else:
                why.append(f"{pool.name}: none of its nodes holds a pod of it")
        offered.sort(key=lambda one: (one.tier, self._price(one, problem), one.pool.arrival))
        search = _Search(self._cluster, self._offers, workload, problem, room)
        best: Choice | None = None
        for some in _sets(offered[:POOLS_TRIED]):
            if best is None or _bound(some, problem) < best.score:
                best = search.best_of(some, best)
        if best is None and offered:
            names = wording.listing([one.pool.name for one in offered], "or")
            most = ", ".join(f"{one.pool.name} {left[one.pool.name]}" for one in offered)
            why.append(f"what {names} may still get ({most}) does not let all of it start")
        return best, why

    def _offer(self, pool: Pool, free: Sequence[int], problem: Problem) -> _Offer:
        probe = self._probes.get(pool.name)
        if probe is None:
            probe = self._probes[pool.name] = pool.object.spec.max
            self._offers.add(pool, [probe])
        table, row = self._cluster.table, self._offers.row((pool.name, probe))
        holds = tuple(
            int(members_fit(table.free[:, row : row + 1], item.shape)[0])
            * int(eligible(table, item.shape)[row])
            for item in problem.items
        )
        tiers = self._cluster.policies.tiers(problem.policy, table)
        tier = 0 if tiers is None else int(tiers[row])
        return _Offer(pool, free, holds, tier, table.free[:, row].copy())

    def _price(self, offer: _Offer, problem: Problem) -> float:
        """Return what a place for a member costs on a pool's nodes, at the best."""
        return offer.pool.cost / max(offer.holds)


def _sets(offered: Sequence[_Offer]) -> Iterator[tuple[_Offer, ...]]:
    for size in range(1, min(POOLS_MIXED, len(offered)) + 1):
        yield from combinations(offered, size)


def _bound(some: Sequence[_Offer], problem: Problem) -> Score:
    """Return what no choice from some pools, one node of each at least, can beat."""
    cost = sum(one.pool.cost for one in some)
    return max(one.tier for one in some), cost, max(one.pool.arrival for one in some)


def _better(one: Choice | None, other: Choice | None) -> Choice | None:
    if one is None or other is None:
        return one or other
    return other if other.score < one.score else one


class _Search:
    """The search for one gang's nodes."""

    def __init__(
        self, cluster: Cluster, offers: Offers, workload: Workload, problem: Problem, room: Room
    ) -> None:
        self._cluster = cluster
        self._offers = offers
        self._workload = workload
        self._problem = problem
        self._room = room
        bounds = (problem.bounds, *problem.group_bounds)
        self._asked = self._demand()
        table, rows = cluster.table, offers.mask(room.there)
        self._free = np.maximum(table.free[:, rows], 0).sum(axis=1)
        self._grouped = any(one.required is not None or one.preferred is not None for one in bounds)

    def _demand(self) -> IntArray:
        """Return by column what the members need at the least; nothing where they may be few."""
        asked: IntArray = np.zeros(len(self._cluster.table.free), dtype=np.int64)
        for item, bundle in zip(self._problem.items, self._problem.bundles, strict=True):
            need = self._problem.needs[item.group].need
            alike = [one for one in self._problem.items if one.group == item.group]
            if bundle == 1 and sum(one.available for one in alike) <= need:
                asked[item.shape.columns] += item.shape.amounts * item.available
        return asked

    def best_of(self, some: Sequence[_Offer], best: Choice | None) -> Choice | None:
        """Return the best choice from exactly some pools, or the one known where that is better."""
        choices = []
        for one in some:
            most = min(one.most(self._problem), self._room.left[one.pool.name], len(one.free))
            choices.append(list(ways(one.pool, one.free, most, grouped=self._grouped)))
        for number, way in enumerate(product(*choices)):
            if number == WAYS_TRIED:
                break
            for one, slots in zip(some, way, strict=True):
                self._offers.add(one.pool, slots)
            best = _better(best, self._fewest(some, way))
        return best

    def _fewest(self, some: Sequence[_Offer], way: Sequence[list[int]]) -> Choice | None:
        """Return the cheapest choice of the beginnings of lists of slots."""
        most = [len(slots) for slots in way]
        if self._try(some, way, most) is None:
            return None
        best: Choice | None = None
        for order in permutations(range(len(some))):
            best = _better(best, self._reduced(some, way, most, order))
        if len(some) > 1 and sum(most) <= WALKED:
            best = self._walk(some, way, most, best)
        return best

    def _reduced(
        self,
        some: Sequence[_Offer],
        way: Sequence[list[int]],
        most: list[int],
        order: Sequence[int],
    ) -> Choice | None:
        """Return the choice where one pool after the other gives as little as it can."""
        counts, found = list(most), None
        for place in order:
            low, high = 0 if len(some) > 1 else 1, counts[place]
            probe = high - 1  # mostly it takes as many as its members fill
            while low < high:
                counts[place] = probe
                tried = self._try(some, way, counts)
                if tried is None:
                    low = probe + 1
                else:
                    high, found = probe, tried
                probe = (low + high) // 2
            counts[place] = high
        return found or self._try(some, way, counts)

    def _walk(
        self,
        some: Sequence[_Offer],
        way: Sequence[list[int]],
        most: list[int],
        best: Choice | None,
    ) -> Choice | None:
        """Return the best choice along all counts that are only just enough.

        The fewer one pool gives, the more another must: of two pools each step takes one node away
        or adds one. A third pool is held at each of its counts in turn.
        """
        first, last, *rest = range(len(some))
        for fixed in product(*(range(most[place] + 1) for place in rest)):
            counts = [most[first], 0, *fixed]
            while counts[first] >= 0 and counts[last] <= most[last]:
                cost = sum(n * one.pool.cost for n, one in zip(counts, some, strict=True))
                dear = best is not None and cost >= best.score[1]
                tried = None if dear else self._try(some, way, counts)
                best = _better(best, tried)
                if tried is not None or (dear and self._enough(some, counts)):
                    counts[first] -= 1
                else:
                    counts[last] += 1
        return best

    def _enough(self, some: Sequence[_Offer], counts: Sequence[int]) -> bool:
        """Return whether so many nodes, with what is free, offer as much as the gang asks for."""
        offered = self._free + sum(n * one.capacity for n, one in zip(counts, some, strict=True))
        return bool((offered >= self._asked).all())

    def _try(
        self, some: Sequence[_Offer], way: Sequence[list[int]], counts: Sequence[int]
    ) -> Choice | None:
        """Return the choice of the first nodes of each list; None where they do not do."""
        if not self._enough(some, counts):
            return None
        placement = self._place(some, way, counts)
        return None if placement is None else self._choice(some, way, counts, placement)

    def _choice(
        self,
        some: Sequence[_Offer],
        way: Sequence[list[int]],
        counts: Sequence[int],
        placement: Placement,
    ) -> Choice:
        used: dict[str, set[int]] = {}
        for one in placement.assignments:
            slot = self._offers.slot(one.spot.node)
            if slot is not None:
                used.setdefault(slot[0], set()).add(slot[1])
        parts, cost, tier, arrival = [], 0.0, 0, 0.0
        for offer, slots, count in zip(some, way, counts, strict=True):
            taken = tuple(s for s in slots[:count] if s in used.get(offer.pool.name, ()))
            if taken:
                parts.append((offer.pool, taken))
                cost += offer.pool.cost * len(taken)
                tier, arrival = max(tier, offer.tier), max(arrival, offer.pool.arrival)
        return Choice((tier, cost, arrival), tuple(parts), placement)

    def _place(
        self, some: Sequence[_Offer], way: Sequence[list[int]], counts: Sequence[int]
    ) -> Placement | None:
        """Return where the gang stands with the first nodes of each list."""
        slots = list(self._room.there)
        for one, listed, count in zip(some, way, counts, strict=True):
            slots += [(one.pool.name, slot) for slot in listed[:count]]
        rows = self._offers.mask(slots)
        return admission.place(self._cluster, self._workload, self._problem, rows)
