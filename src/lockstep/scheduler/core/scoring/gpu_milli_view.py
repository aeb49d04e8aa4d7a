"""The node table as the foresight sees it, and what pods ask in its terms.

A card's free milli are the lesser of what is free of its compute and of its memory: 1000 are all
of either. How many milli an amount of memory is depends on the card, so it is told card by card.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from lockstep.api.names import GPU_MODEL_LABEL
from lockstep.scheduler.core.model.node_table import NodeTable
from lockstep.scheduler.core.resources.columns import (
    CPU_COLUMN,
    GPU_COLUMN,
    MEMORY_COLUMN,
    WHOLE_CARD,
)
from lockstep.scheduler.core.resources.gpu_shares import MIB, GpuShare
from lockstep.scheduler.core.scoring.demand import Demand
from lockstep.scheduler.core.scoring.demand_history import PastRequest
from lockstep.scheduler.core.scoring.fragmentation import Spots
from lockstep.scheduler.core.scoring.gpu_milli import WHOLE, GpuMilliNodes, Request, extent_of
from lockstep.scheduler.core.util.array_types import IntArray

PER_HUNDREDTH = WHOLE // WHOLE_CARD


class GpuMilliView:
    """What is free in a node table, a row for each of its rows, kept up by its journal."""

    def __init__(self, table: NodeTable) -> None:
        if not table.columns.cards:
            table.open_cards()
        self._table = table
        self._version = -1
        self._mark = 0
        self.memory: IntArray = np.zeros((0, 0), dtype=np.int64)
        """MiB of each card, by row and card; 0 where it is not said."""
        self.kinds: dict[tuple[str, int], int] = {}
        """How many cards there are of each model and memory."""
        self.nodes = self._read()

    def refresh(self) -> GpuMilliNodes:
        """Catch up with the table and return what is free."""
        table = self._table
        changed = table.journal.since(self._mark)
        if self._version != table.version or changed is None or len(changed) > table.capacity:
            self.nodes = self._read()
        elif changed:
            self._renew(np.array(sorted(set(changed)), dtype=np.int64))
        self._mark = table.journal.mark
        return self.nodes

    def _read(self) -> GpuMilliNodes:
        table = self._table
        table.widen()
        self._version, self._mark = table.version, table.journal.mark
        ids = table.columns.card_ids
        there = table.live
        self.memory = table.allocatable[ids["memory"]].T.copy()
        column = table.label(GPU_MODEL_LABEL)
        milli = np.where(there[:, None], table.allocatable[ids["whole"]].T * WHOLE, 0)
        nodes = GpuMilliNodes(
            cpu=np.zeros(table.capacity, dtype=np.int64),
            memory=np.zeros(table.capacity, dtype=np.int64),
            milli=milli,
            model=column.ids.astype(np.int64) + 1,
            models=("", *column.values),
            extent=extent_of(
                table.allocatable[CPU_COLUMN][there],
                table.allocatable[MEMORY_COLUMN][there] // MIB,
                milli.sum(axis=1),
            ),
        )
        self.nodes = nodes
        self._renew(np.arange(table.capacity))
        self.kinds = {}
        largest, cards = self.memory.max(axis=1, initial=0), (milli > 0).sum(axis=1)
        for row in np.flatnonzero(cards).tolist():
            kind = nodes.models[nodes.model[row]], int(largest[row])
            self.kinds[kind] = self.kinds.get(kind, 0) + int(cards[row])
        return nodes

    def _renew(self, rows: IntArray) -> None:
        table, nodes = self._table, self.nodes
        found = self.spots(rows, table.free[:, rows])
        # A node that takes no pods has no room.
        closed = ~(table.ready[rows] & table.schedulable[rows])
        for one in (found.milli, found.idle, found.whole):
            one[closed] = 0
        nodes.cpu[rows], nodes.memory[rows], nodes.milli[rows] = found[:3]
        nodes.idle[rows], nodes.whole[rows] = found.idle, found.whole

    def spots(self, rows: IntArray, free: IntArray) -> Spots:
        """Return what the foresight sees of *rows* were that *free* of them, a column each."""
        ids = self._table.columns.card_ids
        milli = self._milli(free[ids["compute"]].T, free[ids["memory"]].T, rows)
        np.maximum(milli, 0, out=milli)
        whole = np.minimum((milli == WHOLE).sum(axis=1), free[GPU_COLUMN])
        return Spots(
            cpu=free[CPU_COLUMN],
            memory=free[MEMORY_COLUMN] // MIB,
            milli=milli,
            idle=milli.sum(axis=1),
            whole=np.maximum(whole, 0),
            model=self.nodes.model[rows],
        )

    def left(self, rows: IntArray, free: IntArray, share: GpuShare) -> IntArray:
        """Return what a share would leave of each card, below 0 where there is no room."""
        ids = self._table.columns.card_ids
        compute = free[ids["compute"]].T - share.compute
        return self._milli(compute, free[ids["memory"]].T - share.memory, rows)

    def _milli(self, compute: IntArray, memory: IntArray, rows: IntArray) -> IntArray:
        """Return the lesser of hundredths and MiB; memory counts where the card says its own."""
        total = self.memory[rows]
        by_memory = np.where(
            total > 0, memory * WHOLE // np.maximum(total, 1), np.where(memory < 0, -1, WHOLE)
        )
        found: IntArray = np.minimum(compute * PER_HUNDREDTH, by_memory)
        return found

    def demand(self, past: Iterable[tuple[PastRequest, float]]) -> Demand:
        """Return how often each request comes, where pods ask for what they asked in the past."""
        found: dict[Request, float] = {}
        for ask, weight in past:
            for request, part in self._requests(ask):
                found[request] = found.get(request, 0.0) + weight * part
        return Demand(found)

    def _requests(self, ask: PastRequest) -> list[tuple[Request, float]]:
        """Return what an ask is in milli: on cards of different memory, different amounts."""
        if ask.share is None:
            milli = WHOLE if ask.gpus else 0
            return [(Request(ask.cpu, ask.memory, ask.gpus, milli, ask.models), 1.0)]
        share, found = ask.share, list[tuple[Request, int]]()
        for (model, memory), cards in self.kinds.items():
            milli = share.compute * PER_HUNDREDTH
            if share.memory:
                milli = max(milli, -(-share.memory * WHOLE // memory)) if memory else 2 * WHOLE
            if 0 < milli <= WHOLE and (not ask.models or model in ask.models):
                request = Request(ask.cpu, ask.memory, share.cards, milli, ask.models)
                found.append((request, cards))
        total = sum(cards for _, cards in found)
        return [(request, cards / total) for request, cards in found]

    def milli_of(self, share: GpuShare, rows: IntArray) -> IntArray:
        """Return the milli that a share takes of all its cards together, by row."""
        memory = np.maximum(self.memory[rows].max(axis=1, initial=0), 1)
        milli = np.maximum(share.compute * PER_HUNDREDTH, -(-share.memory * WHOLE // memory))
        found: IntArray = np.minimum(milli, WHOLE) * share.cards
        return found
