"""Which of several domains that are equally tight costs its members the least communication.

They are compared by the members in network order, before ranks are laid out in the one that is
taken: what tells domains apart is how many narrower ones the members touch, and how slow the links
between those are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

import numpy as np

from lockstep.api.parallelism import Parallelism
from lockstep.scheduler.core.model.node_table import NodeTable
from lockstep.scheduler.core.packing.packing import Packing
from lockstep.scheduler.core.placement.problem import Problem
from lockstep.scheduler.core.placement.rank_assignment import network_order
from lockstep.scheduler.core.ranks.collectives import collectives
from lockstep.scheduler.core.ranks.communication_cost import Talk, cost, holders
from lockstep.scheduler.core.ranks.network import domain_ids, links_of
from lockstep.scheduler.core.scoring.feasibility import Fit
from lockstep.scheduler.core.util.array_types import IntArray

MOST = 8
"""Equally tight domains of which no more are looked at."""


class TieContext(Protocol):
    """What is known where a workload looks for room."""

    table: NodeTable
    problem: Problem
    fits: Sequence[Fit]


class TieDomain(Protocol):
    """The nodes of a domain, the number of its tier, and one that it shares with its equals."""

    level: int
    rows: IntArray
    tie: int


A = TypeVar("A", bound=TieDomain)


class TieBreak(Generic[A]):
    """The domains of a tier that hold the members, told of one by one, the tightest first."""

    def __init__(self, ground: TieContext) -> None:
        self.best: tuple[A, Packing] | None = None
        self._ground = ground
        self._seen: set[bytes] = set()
        self._looked = 0
        self._least: float | None = None
        """What the best one costs, once it had to be known."""

    def over(self, area: A) -> bool:
        """Return whether there is a best one, and nothing from *area* on could be better."""
        if self.best is None:
            return False
        first, tiers = self.best[0], self._ground.table.tiers.indices
        alike = not 0 <= area.level < len(tiers) - 1 or self._ground.problem.spread
        return alike or area.tie != first.tie or self._looked >= MOST

    def has_one_like(self, area: A) -> bool:
        """Return whether one is in already whose free places lie alike in the tiers inside."""
        if self.best is None:
            return False
        if not self._seen:
            self._seen.add(_likeness(self._ground, self.best[0]))
        self._looked += 1
        mark = _likeness(self._ground, area)
        known = mark in self._seen
        self._seen.add(mark)
        return known

    def enter(self, area: A, packing: Packing) -> None:
        """Take in a domain that holds the members."""
        if self.best is None:
            self.best = area, packing
            return
        if self._least is None:
            self._least = communication(self._ground, *self.best)
        seconds = communication(self._ground, area, packing)
        if seconds < self._least:
            self.best, self._least = (area, packing), seconds


def _likeness(ground: TieContext, area: TieDomain) -> bytes:
    rows, parts = area.rows, []
    counts = [fit.count[rows] for fit in ground.fits]
    for tier in ground.table.tiers.indices[area.level + 1 :]:
        ids = tier.ids[rows]
        number = ids - ids.min()
        for count in counts:
            free = np.bincount(number, weights=count)
            parts.append(np.sort(free[free > 0]).tobytes())
    return b"".join(parts)


def communication(ground: TieContext, area: TieDomain, packing: Packing) -> float:
    """Return the seconds a step that members cost where a packing puts them, in network order.

    Ranks talk as their workload says, without parallelism as copies of one model, a rank a node.
    """
    table, ranked = ground.table, ground.problem.ranked
    rows = network_order(table, area.rows[np.flatnonzero(packing.counts.any(axis=0))])
    split, unit_of = Parallelism(), np.arange(len(rows))
    if ranked is not None:
        column = {int(row): place for place, row in enumerate(area.rows)}
        held = packing.counts[:, [column[int(row)] for row in rows]].sum(axis=0)
        rows = np.repeat(rows, held)
        ranks = [workload.ranks for workload in ranked.workloads if workload.row < 0][: len(rows)]
        rows = rows[: len(ranks)]
        split, unit_of = ranked.split, holders(ranks)
    try:
        talking = collectives(split, len(unit_of))
    except ValueError:  # no whole copy of the model yet
        return 0.0
    return cost(Talk(len(rows), talking, unit_of), domain_ids(table, rows), links_of(table.tiers))
