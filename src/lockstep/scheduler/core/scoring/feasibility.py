"""The feasibility model: how many pods of a shape fit each node, as one vector.

Placing, explaining and what-if all go through ``members_fit`` and ``filters``; there is no
second opinion on whether something fits.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from lockstep.api.gang import Strategy
from lockstep.scheduler.core.model.node_table import NodeTable
from lockstep.scheduler.core.model.pod_shape import PodShape
from lockstep.scheduler.core.resources.aligned_capacity import aligned_fit
from lockstep.scheduler.core.resources.alignment import concessions
from lockstep.scheduler.core.resources.columns import GPU_COLUMN
from lockstep.scheduler.core.resources.gpu_shares import ill_matched, shares_fit
from lockstep.scheduler.core.resources.selectors import (
    untolerated,
)
from lockstep.scheduler.core.scoring.demand_history import DemandHistory
from lockstep.scheduler.core.scoring.node_filters import filters, term_rows
from lockstep.scheduler.core.scoring.strategies import (
    Emptiest,
    ForesightPreference,
    Fullest,
    Preference,
)
from lockstep.scheduler.core.util.array_types import BoolArray, FloatArray, IntArray

PREFERENCE_WEIGHT = 1e4
"""What one step of preference weighs in the liking of a node, beside how full it is."""
WISH_STEPS, TAINT_STEPS = 2, 200
"""Steps of preference for one workload of an affinity's weight, and for a PreferNoSchedule
taint."""
ALIGNMENT_STEPS = 100
"""Steps that a node is worse where nothing can be had of how close together devices had better be;
where a part of it can, they are fewer in proportion."""
MATCH_WEIGHT = PREFERENCE_WEIGHT / 2
"""What a node is worse where an online share would be beside another, or an offline one beside
none: less than anything that a pod asks for, and more than how full the node is."""
GPU_NODE_COST = 1
"""Steps that a node with GPUs is worse for pods without: less than anything they asked for."""


def members_fit(free: IntArray, shape: PodShape) -> IntArray:
    """Return how many pods of a shape fit into each column of *free* by its resources."""
    fit: IntArray = free[shape.columns[0]] // shape.amounts[0]
    for column, amount in zip(shape.columns[1:], shape.amounts[1:], strict=True):
        np.minimum(fit, free[column] // amount, out=fit)
    if shape.share is not None:
        np.minimum(fit, shares_fit(free, shape.share, shape.table), out=fit)
    np.maximum(fit, 0, out=fit)
    required = shape.alignment.required
    return aligned_fit(free, shape, required, fit) if required else fit


def eligible(table: NodeTable, shape: PodShape) -> BoolArray:
    """Return the rows that a shape may stand on, full or not."""
    passes = table.live.copy()
    for one in filters(table, shape):
        passes &= one.passes
    return passes


def _unmet(table: NodeTable, shape: PodShape) -> FloatArray:
    """Return by row how much of what a shape would rather have is missing there."""
    unmet: FloatArray = np.zeros(table.capacity)
    for wish in shape.preferred:
        unmet += WISH_STEPS * wish.weight * ~term_rows(table, wish.preference)
    costs = np.array(
        [
            float(TAINT_STEPS) * len(untolerated(taints, shape.tolerations, ("PreferNoSchedule",)))
            for taints in table.taint_sets.sets
        ]
    )
    unmet += costs[table.taints]
    return unmet


class Fit(Protocol):
    """How many pods of one shape fit each row, which rows they may stand on and which they like."""

    @property
    def eligible(self) -> BoolArray:
        """Return the rows that meet every requirement."""

    @property
    def count(self) -> IntArray:
        """Return how many fit each row now."""

    @property
    def liking(self) -> FloatArray:
        """Return how much each row is liked."""

    @property
    def appeal(self) -> FloatArray:
        """Return how much each row is liked that has room; minus infinity for the others."""

    @property
    def unmet(self) -> FloatArray:
        """Return how much of what the shape would rather have each row is missing."""

    @property
    def on_gpus(self) -> BoolArray:
        """Return the rows that have GPUs, for a shape that takes none."""


@dataclass(frozen=True, slots=True)
class FixedFit:
    """The vectors as they would be under other requirements, at one moment."""

    eligible: BoolArray
    count: IntArray
    liking: FloatArray
    unmet: FloatArray
    on_gpus: BoolArray

    @property
    def appeal(self) -> FloatArray:
        """Return how much each row is liked that has room; minus infinity for the others."""
        return _appeal(self.count, self.liking)


def _appeal(count: IntArray, liking: FloatArray) -> FloatArray:
    return np.where(count > 0, liking, -np.inf)


def within(fit: Fit, rows: BoolArray) -> FixedFit:
    """Return the vectors of a shape on some rows alone."""
    return FixedFit(fit.eligible & rows, fit.count * rows, fit.liking, fit.unmet, fit.on_gpus)


def _indifferent(table: NodeTable, shape: PodShape, passes: BoolArray) -> FixedFit:
    """Return the vectors of a shape that likes all rows alike."""
    count, nothing = members_fit(table.free, shape) * passes, np.zeros(table.capacity)
    return FixedFit(passes, count, nothing, nothing, np.zeros(table.capacity, dtype=bool))


def lifted(table: NodeTable, shape: PodShape, words: str) -> FixedFit:
    """Return the vectors of a shape without the requirement that reads *words*."""
    passes = table.live.copy()
    for one in filters(table, shape):
        if one.words != words:
            passes &= one.passes
    return _indifferent(table, shape, passes)


def unaligned(table: NodeTable, shape: PodShape) -> FixedFit:
    """Return the vectors of a shape were its devices' alignment no requirement."""
    lax = shape.lax()
    return _indifferent(table, lax, eligible(table, lax))


class ShapeFit:
    """For one shape: how many fit each node now, and how much a strategy likes each node.

    Kept up to date row by row: what changed since the last look is read from the journal.
    """

    def __init__(self, table: NodeTable, shape: PodShape, preference: Preference) -> None:
        self._table = table
        self.shape = shape
        self.preference = preference
        self._version = -1
        self._mark = self._priced = 0
        self._moment: tuple[int, ...] = ()
        self.eligible: BoolArray = np.zeros(0, dtype=bool)
        self.count: IntArray = np.zeros(0, dtype=np.int64)
        self.liking: FloatArray = np.zeros(0)
        self.appeal: FloatArray = np.zeros(0)
        self.unmet: FloatArray = np.zeros(0)
        """How much of what the shape would rather have each row is missing."""
        self.on_gpus: BoolArray = np.zeros(0, dtype=bool)
        """The rows that have GPUs, for a shape that takes none."""
        self._wishes: FloatArray = np.zeros(0)
        self._rating: FloatArray = np.zeros(0)

    def refresh(self) -> ShapeFit:
        """Catch up with the node table; return self."""
        table, preference = self._table, self.preference
        preference.keep_up()
        if self._version != table.version:
            table.widen()
            self.eligible = eligible(table, self.shape)
            self.unmet = _unmet(table, self.shape)
            self.on_gpus = (table.allocatable[GPU_COLUMN] > 0) & (not self.shape.takes_gpus)
            self._wishes = -PREFERENCE_WEIGHT * (self.unmet + GPU_NODE_COST * self.on_gpus)
            self._version = table.version
            self._recount_all()
            return self
        changed = table.journal.since(self._mark)
        if changed is None or len(changed) > table.capacity or self._moment != preference.moment:
            self._recount_all()
            return self
        if changed:
            self._recount(np.array(sorted(set(changed)), dtype=np.int64))
        if self._priced != preference.priced:
            self._settle(np.arange(table.capacity))
            self._priced = preference.priced
        self._mark = table.journal.mark
        return self

    def _recount_all(self) -> None:
        table, preference = self._table, self.preference
        rows = np.arange(table.capacity)
        self.count = members_fit(table.free, self.shape) * self.eligible
        self._rating = preference.rate(self.shape, rows)
        self.liking, self.appeal = np.empty(table.capacity), np.empty(table.capacity)
        self._settle(rows)
        self._moment, self._priced = preference.moment, preference.priced
        self._mark = table.journal.mark

    def _recount(self, rows: IntArray) -> None:
        self.count[rows] = members_fit(self._table.free[:, rows], self.shape) * self.eligible[rows]
        self._rating[rows] = self.preference.rate(self.shape, rows)
        self._settle(rows)

    def _settle(self, rows: IntArray) -> None:
        settled = self.preference.settle(self.shape, self._rating[rows], rows)
        liking = self._wishes[rows] + settled
        share, table = self.shape.share, self._table
        if share is not None and table.columns.classed:
            liking -= MATCH_WEIGHT * ill_matched(table.free[:, rows], share, table.columns)
        if self.shape.alignment.preferred:
            liking -= PREFERENCE_WEIGHT * ALIGNMENT_STEPS * self._misaligned(rows)
        self.liking[rows] = liking
        self.appeal[rows] = _appeal(self.count[rows], liking)

    def _misaligned(self, rows: IntArray) -> FloatArray:
        """Return by row how far a shape must go in giving up what it prefers there, 0 to 1."""
        free, wishes = self._table.free[:, rows], concessions(self.shape.alignment.preferred)[:-1]
        fails = [members_fit(free, self.shape.strict(kept)) == 0 for kept in wishes]
        found: FloatArray = np.cumprod(fails, axis=0).mean(axis=0)
        return found


class Fits:
    """The fit vectors of the shapes asked for most recently, as strategies see them."""

    LIMIT = 256

    def __init__(self, table: NodeTable, past: DemandHistory, origin: Fits | None = None) -> None:
        """Look at *table*; *origin* are the fits of the table that it was copied from."""
        self._table = table
        self._past = past
        self._origin = origin
        self._fits: OrderedDict[tuple[int, type[Preference]], ShapeFit] = OrderedDict()
        self._fullest, self._emptiest = Fullest(table), Emptiest(table)
        self._foreseen: ForesightPreference | None = None

    def fork(self, table: NodeTable) -> Fits:
        """Return the vectors over a copy of the table, judged by what is known here."""
        return Fits(table, self._past, self)

    def preference(self, strategy: Strategy | None) -> Preference:
        """Return what rates nodes under a strategy; none is the one that does best.

        Where shares of GPUs are in use, that is to look after fragmentation.
        """
        if strategy is None and self._past.sharing:
            strategy = "Fragmentation"
        if strategy == "Fragmentation":
            return self._foresight()
        return self._emptiest if strategy == "Spread" else self._fullest

    def _foresight(self) -> ForesightPreference:
        if self._foreseen is None:
            origin = self._origin._foresight() if self._origin is not None else None
            self._foreseen = ForesightPreference(self._table, self._past, origin)
        return self._foreseen

    def of(self, shape: PodShape, strategy: Strategy | None = None) -> ShapeFit:
        """Return the fit vectors of a shape, up to date."""
        preference = self.preference(strategy)
        key = shape.id, type(preference)
        found = self._fits.get(key)
        if found is None:
            found = self._fits[key] = ShapeFit(self._table, shape, preference)
            if len(self._fits) > self.LIMIT:
                self._fits.popitem(last=False)
        else:
            self._fits.move_to_end(key)
        return found.refresh()
