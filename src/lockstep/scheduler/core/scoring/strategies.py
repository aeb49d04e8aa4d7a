"""How much nodes are liked: what a strategy thinks of each, and which of their cards it takes.

A strategy rates nodes for pods of one shape, the higher the better. All code that chooses among
nodes goes by these ratings (``ShapeFit.liking``); no strategy has a way of its own into the
packing.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from lockstep.scheduler.core.model.node_table import NodeTable
from lockstep.scheduler.core.model.pod_shape import PodShape
from lockstep.scheduler.core.resources.columns import GPU_COLUMN
from lockstep.scheduler.core.resources.gpu_shares import openings, tightness
from lockstep.scheduler.core.scoring.card_value import worth_of_rest
from lockstep.scheduler.core.scoring.demand_history import DemandHistory, past_request
from lockstep.scheduler.core.scoring.fragmentation import Foresight, Spots
from lockstep.scheduler.core.scoring.gpu_milli import WHOLE, Request
from lockstep.scheduler.core.scoring.gpu_milli_view import GpuMilliView
from lockstep.scheduler.core.util.array_types import FloatArray, IntArray

GPU_WEIGHT = 10.0
CARD_WEIGHT = 1000.0
"""What beginning an unused card weighs in the liking of pods that take shares."""
GROWTH = 1.25
"""How much more must have come since the last time before it is asked anew what usually comes."""
SHAPES = 4096
"""Shapes of which it is remembered what they ask; beyond it the memo starts afresh."""
BOUND = 4000.0
"""The bound of every rating either way: less than half a step of preference."""


class Preference(Protocol):
    """A strategy's opinion of the nodes of one table."""

    steady: bool
    """Whether the node liked best stays so until it is full."""

    def keep_up(self) -> None:
        """Take note of what changed in the table."""

    @property
    def moment(self) -> tuple[int, ...]:
        """Return what changes when ratings of before do not compare with those of now."""

    @property
    def priced(self) -> int:
        """Return what changes when ratings compare, but have to be settled anew."""

    def rate(self, shape: PodShape, rows: IntArray) -> FloatArray:
        """Return how much pods of a shape like each of *rows* as it is now."""

    def settle(self, shape: PodShape, rating: FloatArray, rows: IntArray) -> FloatArray:
        """Return the ratings of *rows* with what every node costs taken off, within ``BOUND``."""

    def cards(self, row: int, free: IntArray, shape: PodShape) -> list[int]:
        """Return the cards that a share had better go to, the best first.

        *free* is the node's column, as it would be; none stands for the fullest that will do.
        """


class Fullest:
    """Fills nodes one after the other."""

    steady = True
    moment = ()
    priced = 0

    def __init__(self, table: NodeTable) -> None:
        self._table = table

    def keep_up(self) -> None:
        """Need no note: ratings follow from the rows alone."""

    def rate(self, shape: PodShape, rows: IntArray) -> FloatArray:
        """Return how full nodes are: those with the fewest free GPUs first, then the fullest."""
        table, weighed = self._table, shape.weighed
        here = weighed[:, None], rows  # of many columns: those of single devices are not weighed
        share = table.used[here] / np.maximum(table.allocatable[here], 1)
        packed: FloatArray = np.add.reduce(share, axis=0) / len(share)
        wanted = shape.share
        if wanted is None:
            packed -= GPU_WEIGHT * table.free[GPU_COLUMN, rows]
            return packed
        free = table.free[:, rows]
        # Cards in use first, the fullest; else a node with few free ones left.
        begun = openings(free, wanted, shape.table)
        packed += GPU_WEIGHT * tightness(free, wanted, shape.table)
        packed -= np.where(begun > 0, CARD_WEIGHT * begun + GPU_WEIGHT * free[GPU_COLUMN], 0.0)
        return packed

    def settle(self, shape: PodShape, rating: FloatArray, rows: IntArray) -> FloatArray:
        """Return the ratings as they are: all nodes cost the same."""
        return rating if shape.share is None else bounded(rating)

    def cards(self, row: int, free: IntArray, shape: PodShape) -> list[int]:
        """Return no cards."""
        return []


class Emptiest(Fullest):
    """Goes to the emptiest node, which is another one as soon as it took a pod."""

    steady = False

    def rate(self, shape: PodShape, rows: IntArray) -> FloatArray:
        """Return how empty nodes are."""
        found: FloatArray = -super().rate(shape, rows)
        return found


class ForesightPreference:
    """Leaves the most for what usually comes, as far as the past tells."""

    steady = False

    def __init__(
        self, table: NodeTable, past: DemandHistory, origin: ForesightPreference | None = None
    ) -> None:
        """Look at *table*; where it is what *origin*'s might be, judge it by what that expects."""
        self._table = table
        self._past = past
        self._origin = origin
        self._view = GpuMilliView(table)
        self._asked: dict[int, Request] = {}
        self._learnt = 0
        if origin is None:
            self._learn()
        else:
            self._follow(origin)

    def keep_up(self) -> None:
        """Learn from what came since, and look afresh at what room is left to which pods."""
        nodes = self._view.refresh()
        if self._origin is not None:
            self._origin.keep_up()
            self._follow(self._origin)
            return
        grown = not self._total / GROWTH <= self._past.total <= self._total * GROWTH
        if grown or self._kinds.keys() != self._view.kinds.keys():
            self._learn()
        elif self._version != self._table.version:
            self._look()
        self._foresight.keep_up(nodes)

    def _learn(self) -> None:
        self._total, self._kinds = self._past.total, self._view.kinds
        self._demand = self._view.demand(self._past.usual())
        self._worth = worth_of_rest(self._demand.sizes())
        self._look()

    def _look(self) -> None:
        self._version = self._table.version
        self._learnt += 1
        self._foresight = Foresight(self._view.nodes, self._demand, self._worth)

    def _follow(self, origin: ForesightPreference) -> None:
        self._learnt, self._foresight = origin._learnt, origin._foresight

    @property
    def moment(self) -> tuple[int, ...]:
        """Return how often it was learnt what usually comes, and weighed what room is left."""
        return self._learnt, self._foresight.weighed

    @property
    def priced(self) -> int:
        """Return how often it was found how sought-after each model is."""
        return self._foresight.priced

    def rate(self, shape: PodShape, rows: IntArray) -> FloatArray:
        """Return minus the GPU milli expected to be lost, without regard to the model."""
        spots = Spots.of(self._view.nodes, rows)
        request = self._request(shape)
        if shape.share is None:
            return self._foresight.rate_whole(spots, request)
        left = self._view.left(rows, self._table.free[:, rows], shape.share)
        return self._foresight.rate_share(spots, request, left)[0]

    def settle(self, shape: PodShape, rating: FloatArray, rows: IntArray) -> FloatArray:
        """Return the ratings less the price of each node's model."""
        price = self._foresight.price[self._view.nodes.model[rows]]
        if shape.share is None:
            return bounded(rating - shape.gpus * WHOLE * price)
        return bounded(rating - self._view.milli_of(shape.share, rows) * price)

    def cards(self, row: int, free: IntArray, shape: PodShape) -> list[int]:
        """Return the cards that lose least, the best first."""
        share = shape.share
        if share is None:
            return []
        rows, column = np.array([row]), free[:, None]
        spots, left = self._view.spots(rows, column), self._view.left(rows, column, share)
        _, opened, gains = self._foresight.rate_share(spots, self._request(shape), left)
        untouched = np.flatnonzero((spots.milli[0] == WHOLE) & (left[0] >= 0)).tolist()
        begun = [c for c in np.argsort(-gains[0], kind="stable").tolist() if gains[0][c] > -np.inf]
        first, beside = int(opened[0]), share.cards - int(opened[0])
        best = begun[:beside] + untouched[:first]
        return best + begun[beside:] + untouched[first:]

    def _request(self, shape: PodShape) -> Request:
        found = self._asked.get(shape.id)
        if found is None:
            if len(self._asked) >= SHAPES:
                self._asked.clear()
            ask = past_request(shape)
            cards = ask.share.cards if ask.share is not None else ask.gpus
            found = Request(ask.cpu, ask.memory, cards, WHOLE if ask.gpus else 0)
            self._asked[shape.id] = found
        return found


def bounded(rating: FloatArray) -> FloatArray:
    """Return ratings in the same order, all within ``BOUND`` either way."""
    found: FloatArray = np.nan_to_num(rating, nan=-1e12, posinf=1e12, neginf=-1e12)
    found /= 1.0 + np.abs(found) / BOUND
    return found
