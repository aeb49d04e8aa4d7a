"""Which members of a workload get which of the places that its packing found.

Members without ranks get neighbouring places in the order of their names. Those that hold ranks
are laid out by what their ranks say to each other; where the domain has room to spare, other
places than those of the packing are looked at too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from lockstep.scheduler.core.model.node_table import NodeTable
from lockstep.scheduler.core.model.topology import NO_DOMAIN
from lockstep.scheduler.core.model.workload import Member
from lockstep.scheduler.core.packing.device_assignment import left_after
from lockstep.scheduler.core.packing.packing import Packing
from lockstep.scheduler.core.placement.problem import Problem, Ranked, RankedUnit
from lockstep.scheduler.core.ranks.collectives import Collective, collectives, grids
from lockstep.scheduler.core.ranks.communication_cost import Talk, holders
from lockstep.scheduler.core.ranks.network import domain_ids, links_of
from lockstep.scheduler.core.ranks.rank_mapping import Slots, Task, lay_out
from lockstep.scheduler.core.scoring.feasibility import Fit, members_fit
from lockstep.scheduler.core.util.array_types import BoolArray, IntArray
from lockstep.scheduler.core.util.unique import numbered

SPARE = 64
"""Places beyond those of the packing that a layout may choose from, at least."""


class RankContext(Protocol):
    """What is known where a workload has found room."""

    table: NodeTable
    problem: Problem
    fits: Sequence[Fit]
    tiers_of_policy: IntArray | None


class RankDomain(Protocol):
    """The nodes of a domain."""

    rows: IntArray


def seated(
    ground: RankContext, area: RankDomain, packing: Packing
) -> Iterator[tuple[int, list[Member]]]:
    """Yield each node that gets members, by row and in network order, with those members."""
    problem = ground.problem
    rows = network_order(ground.table, area.rows[np.flatnonzero(packing.counts.any(axis=0))])
    if ground.tiers_of_policy is not None:  # what goes first on shrinking comes last
        rows = rows[np.argsort(ground.tiers_of_policy[rows], kind="stable")]
    column: IntArray = np.zeros(ground.table.capacity, dtype=np.int64)
    column[area.rows] = np.arange(len(area.rows))
    counts = packing.counts[:, column[rows]]
    places = [np.repeat(rows, count) for count in counts]
    if problem.ranked is not None:
        places = _laid_out(ground, area, packing, problem.ranked, places)
    found: dict[int, list[Member]] = {int(row): [] for row in rows}
    for members, taken, size in zip(problem.members, places, problem.bundles, strict=True):
        for number, row in enumerate(taken):
            bundle = members[number * size : (number + 1) * size]
            found.setdefault(int(row), []).extend(bundle)
    yield from ((row, members) for row, members in found.items() if members)


def network_order(table: NodeTable, rows: IntArray) -> IntArray:
    """Return rows so that neighbours in the order are neighbours in the network."""
    keys = [table.rank()[rows]]
    for index in reversed(table.tiers.indices):
        first = np.full(len(index) + 1, table.capacity, dtype=np.int64)
        inside = index.ids != NO_DOMAIN
        np.minimum.at(first, index.ids[inside], table.rank()[inside])
        first[-1] = -1  # where the tier has no domain for a row
        keys.append(first[index.ids[rows]])
    return rows[np.lexsort(keys)]


def _laid_out(
    ground: RankContext, area: RankDomain, packing: Packing, ranked: Ranked, places: list[IntArray]
) -> list[IntArray]:
    """Return by item the rows of its places, in the order in which its members take them."""
    problem, table = ground.problem, ground.table
    chosen = [workload for workload in ranked.workloads if _has_place(problem, workload, places)]
    unit_of = holders([workload.ranks for workload in chosen])
    try:
        talking = collectives(ranked.split, len(unit_of))
    except ValueError:  # no whole copy of the model yet: nothing to go by
        return places
    slots = _Seats(ground, area, packing, chosen, places)
    if not slots.movable:
        return places
    task = _task(table, ranked, talking, unit_of, slots)
    return slots.filled(lay_out(task))


def _has_place(problem: Problem, workload: RankedUnit, places: list[IntArray]) -> bool:
    return workload.item < 0 or workload.number < len(places[workload.item])


@dataclass(slots=True)
class _Seats:
    """Places of workloads as slots: what is chosen for each workload now, and what could be
    instead."""

    ground: RankContext
    chosen: list[RankedUnit]
    places: list[IntArray]
    rows: IntArray
    """By slot the row of its (first) node."""
    kind: IntArray
    start: IntArray
    fixed: BoolArray
    whole: list[IntArray]
    """By slot the rows of all its places."""

    def __init__(
        self,
        ground: RankContext,
        area: RankDomain,
        packing: Packing,
        chosen: list[RankedUnit],
        places: list[IntArray],
    ) -> None:
        self.ground, self.chosen, self.places = ground, chosen, places
        self.whole = []
        kinds: list[int] = []
        first: dict[int, int] = {}
        items = sorted(
            {workload.item for workload in chosen if workload.item >= 0 and workload.row < 0}
        )
        for item in items:
            first[item] = len(kinds)
            block = ground.problem.blocks[item]
            size = block[1] if block is not None else 1
            self.whole += np.split(places[item], np.arange(size, len(places[item]), size))
            kinds += [item] * (len(self.whole) - len(kinds))
        start = []
        for workload in chosen:
            if workload.row >= 0:
                start.append(len(kinds))
                self.whole.append(np.array([workload.row]))
                kinds.append(-1 - len(kinds))
            else:
                block = ground.problem.blocks[workload.item]
                start.append(first[workload.item] + workload.number // (block[1] if block else 1))
        if len(items) == 1:
            spare = _spare(ground, area, packing, items[0], places[items[0]])
            self.whole += [np.array([row]) for row in spare]
            kinds += [items[0]] * len(spare)
        self.rows = np.array([rows[0] for rows in self.whole], dtype=np.int64)
        self.kind = np.array(kinds, dtype=np.int64)
        self.start = np.array(start, dtype=np.int64)
        self.fixed = np.array([workload.row >= 0 for workload in chosen], dtype=bool)

    @property
    def movable(self) -> bool:
        """Return whether there is anything to choose."""
        return bool((~self.fixed).sum() > 1 or len(self.rows) > len(self.chosen))

    def filled(self, taken: IntArray) -> list[IntArray]:
        """Return by item the rows of its places once each workload has the slot *taken* for it."""
        places = [rows.copy() for rows in self.places]
        for workload, slot in zip(self.chosen, taken, strict=True):
            if workload.row < 0:
                rows = self.whole[slot]
                places[workload.item][workload.number : workload.number + len(rows)] = rows
        return places


def _spare(
    ground: RankContext, area: RankDomain, packing: Packing, item: int, taken: IntArray
) -> IntArray:
    """Return rows of places that the packing leaves over, those nearest to what it takes first."""
    problem, table = ground.problem, ground.table
    bounds = problem.group_bounds[problem.items[item].group]
    apart = bounds.required is not None or bounds.preferred is not None or bool(bounds.standing)
    ordered = ground.tiers_of_policy is not None
    # Where limits count by node, only the packing knows how many may stand where.
    fixed = ordered or problem.headroom
    if problem.spread or problem.blocks[item] is not None or apart or fixed:
        return np.zeros(0, dtype=np.int64)
    left = left_after(
        [item.shape for item in problem.items], table.free[:, area.rows], packing.counts
    )
    room = members_fit(left, problem.items[item].shape) * ground.fits[item].eligible[area.rows]
    open_to = network_order(table, area.rows[np.flatnonzero(room)])
    held = dict(zip(area.rows.tolist(), room.tolist(), strict=True))
    # Narrowest tiers first: what lies in a domain in use before what does not.
    far = np.zeros(len(open_to), dtype=np.int64)
    for index in table.tiers.indices:
        far += ~np.isin(index.ids[open_to], index.ids[taken])
    nearest = open_to[np.argsort(far, kind="stable")]
    rows = np.repeat(nearest, [held[int(row)] for row in nearest])
    return rows[: max(SPARE, len(taken) // 4)]


def _task(
    table: NodeTable,
    ranked: Ranked,
    talking: Sequence[Collective],
    unit_of: IntArray,
    slots: _Seats,
) -> Task:
    firsts, _ = numbered(unit_of)
    return Task(
        talk=Talk(len(firsts), talking, unit_of),
        kind=slots.kind[slots.start],
        keys=axes_of(ranked, firsts, len(unit_of), talking),
        slots=Slots(domain_ids(table, slots.rows), slots.kind),
        links=links_of(table.tiers),
        start=slots.start,
        fixed=slots.fixed,
    )


AXIS_OF: Mapping[str, str] = {
    "tensor": "tp",
    "context": "cp",
    "data": "dp",
    "pipeline": "pp",
    "expert": "ep",
    "expert data": "dp",
}


def axes_of(
    ranked: Ranked, firsts: IntArray, ranks: int, talking: Sequence[Collective]
) -> list[IntArray]:
    """Return the coordinates of the first ranks, the axis that says least first.

    The axis that says most is then the innermost of the blocks that stay together.
    """
    said = dict.fromkeys(AXIS_OF.values(), 0.0)
    for one in talking:
        said[AXIS_OF[one.name]] = max(said[AXIS_OF[one.name]], one.volume)
    found: list[tuple[float, IntArray]] = []
    for grid in grids(ranked.split, ranks):
        here = grid.coordinates(firsts)
        found += [(said[axis], here[axis]) for axis in grid.order]
    found.sort(key=lambda one: one[0])
    return [axis for _, axis in found]
