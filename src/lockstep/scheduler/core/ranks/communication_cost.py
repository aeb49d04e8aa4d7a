"""What it costs to have the ranks of a job where they are: seconds of communication a step.

Ranks that always stay together (those of one pod, or of the pods that hold one tensor group) are a
*unit*; units stand on *slots*. A group of ranks is as fast as the widest tier that it spans, so
its time is its bytes over that tier's bandwidth, and a little more for each domain that it touches.
Told per tier: a group pays for a tier once it has units in two of its domains.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lockstep.scheduler.core.ranks.collectives import Collective
from lockstep.scheduler.core.util.array_types import FloatArray, IntArray
from lockstep.scheduler.core.util.unique import distinct


@dataclass(frozen=True, slots=True)
class Links:
    """What the network does between the domains of each tier, widest tier first."""

    slowness: FloatArray
    """Seconds a byte between two domains of the tier; one value more for inside the narrowest."""
    hop: FloatArray
    """Seconds for each domain of the tier that a group touches when it touches several."""

    @property
    def surcharge(self) -> FloatArray:
        """Return what crossing a tier adds to the seconds a byte of crossing the narrower one."""
        step: FloatArray = np.maximum(self.slowness[:-1] - self.slowness[1:], 0.0)
        return step


class Talk:
    """The groups of units that talk, with what each weighs, averaged over the ranks."""

    def __init__(self, units: int, collectives: Sequence[Collective], unit_of: IntArray) -> None:
        self.units = units
        self.ranks = len(unit_of)
        edges: list[IntArray] = []
        volume: list[FloatArray] = []
        calls: list[FloatArray] = []
        self.inside = 0.0
        """Bytes a rank moves in a step within its unit, wherever that stands."""
        for one in collectives:
            rows, times = _distinct(np.sort(unit_of[one.groups], axis=1))
            share = times * (one.groups.shape[1] / self.ranks)
            self.inside += float(share.sum()) * one.volume
            several = rows[:, 0] != rows[:, -1]
            edges += _members(rows[several])
            volume.append(share[several] * one.volume)
            calls.append(share[several])
        self.edges = edges
        self.volume: FloatArray = np.concatenate([*volume, [0.0]])
        """By group its bytes times the share of ranks that move them; the last group is none."""
        self.calls: FloatArray = np.concatenate([*calls, [0.0]])
        self.sizes: IntArray = np.array([*(len(e) for e in edges), 0], dtype=np.int64)

    @cached_property
    def of_unit(self) -> IntArray:
        """Return by unit the groups that it is in, filled up with the one that is none."""
        none = len(self.edges)
        lists: list[list[int]] = [[] for _ in range(self.units)]
        for number, members in enumerate(self.edges):
            for unit in members:
                lists[unit].append(number)
        width = max((len(one) for one in lists), default=0) or 1
        return np.array([one + [none] * (width - len(one)) for one in lists], dtype=np.int64)

    @cached_property
    def pairs(self) -> tuple[IntArray, IntArray]:
        """Return every membership as two arrays: the group and the unit."""
        if not self.edges:
            nothing: IntArray = np.zeros(0, dtype=np.int64)
            return nothing, nothing
        number = np.repeat(np.arange(len(self.edges)), self.sizes[:-1])
        return number, np.concatenate(self.edges)


def holders(ranks: Sequence[Sequence[range]]) -> IntArray:
    """Return by rank which of some units holds it, *ranks* of each given; gaps are left out."""
    every = [np.arange(held.start, held.stop) for spans in ranks for held in spans]
    sizes = [sum(map(len, spans)) for spans in ranks]
    unit_of: IntArray = np.repeat(np.arange(len(ranks)), sizes)
    return unit_of[np.argsort(np.concatenate(every), kind="stable")] if every else unit_of


def _distinct(rows: IntArray) -> tuple[IntArray, IntArray]:
    """Return the different rows in order, and how often each is there."""
    order = np.lexsort(rows.T[::-1])
    ordered = rows[order]
    new = np.concatenate([[True], (ordered[1:] != ordered[:-1]).any(axis=1)])
    starts = np.flatnonzero(new)
    return ordered[starts], np.diff(np.append(starts, len(rows)))


def _members(rows: IntArray) -> list[IntArray]:
    """Return the different units of each row, which is sorted."""
    if (np.diff(rows, axis=1) != 0).all():
        return list(rows)
    return [distinct(row) for row in rows]


def spanned(talk: Talk, domains: IntArray) -> IntArray:
    """Return how many domains of one tier each group touches, given each unit's domain."""
    number, unit = talk.pairs
    width = int(domains.max(initial=0)) + 1
    touched = distinct(number * width + domains[unit])
    found: IntArray = np.bincount(touched // width, minlength=len(talk.edges) + 1)
    return found


def cost(talk: Talk, ids: IntArray, links: Links) -> float:
    """Return the seconds of communication a step, averaged over the ranks, without any overlap.

    *ids* holds for each tier, widest first, the domain of every unit.
    """
    seconds = talk.inside * float(links.slowness[-1])
    for level, step in enumerate(links.surcharge):
        domains = spanned(talk, ids[level])
        seconds += tier_cost(talk, domains, float(step), float(links.hop[level])).sum()
    return float(seconds)


def tier_cost(talk: Talk, domains: IntArray, step: float, hop: float) -> FloatArray:
    """Return by group what its *domains* of one tier cost it."""
    found: FloatArray = (domains > 1) * (talk.volume * step + talk.calls * hop * domains)
    return found
