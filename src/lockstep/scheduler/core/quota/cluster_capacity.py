"""What the nodes offer, in the workloads of the queues' accounts."""

from __future__ import annotations

import numpy as np

from lockstep.api.names import GPU, GPU_MODEL_LABEL
from lockstep.scheduler.core.model.node_table import NodeTable
from lockstep.scheduler.core.quota.account import UNKNOWN_CARD, Amounts, CardKind
from lockstep.scheduler.core.quota.guarantee import MODEL_PREFIX
from lockstep.scheduler.core.quota.ledger import Ledger
from lockstep.scheduler.core.resources.columns import GPU_COLUMN
from lockstep.scheduler.core.util.array_types import IntArray


class ClusterCapacity:
    """What there is to be divided among the queues; counted anew only where nodes changed."""

    def __init__(self, table: NodeTable, ledger: Ledger) -> None:
        self._table = table
        self._ledger = ledger
        self._known: tuple[tuple[int, int], Amounts] = ((-1, -1), {})
        self._numbers: dict[CardKind, int] = {}
        """The kinds of GPUs that nodes have, numbered as they were met."""
        self._own: IntArray = np.zeros(0, dtype=np.int64)
        """By row of the nodes the number of its kind."""
        self._version, self._mark = -1, 0
        """How far both have followed the table."""

    def card(self, node: str) -> CardKind:
        """Return what a node's GPUs are like, as far as it says."""
        row = self._table.rows.get(node)
        return self._card_in(row) if row is not None else UNKNOWN_CARD

    def _card_in(self, row: int) -> CardKind:
        facts = self._table.facts[row]
        if facts is None:
            return UNKNOWN_CARD
        memory = facts.layout.cards[0].memory if facts.layout.cards else 0
        return CardKind(facts.labels.get(GPU_MODEL_LABEL, ""), memory)

    def cards(self) -> tuple[list[CardKind], IntArray]:
        """Return what kinds of GPUs there are, and by row of the nodes which of them it has."""
        table = self._table
        if self._version != table.version:
            changed = table.journal.since(self._mark)
            if changed is None:
                changed = list(range(table.capacity))
            self._own = np.pad(self._own, (0, table.capacity - len(self._own)))
            self._numbers.setdefault(UNKNOWN_CARD, 0)
            for row in set(changed):
                self._own[row] = self._numbers.setdefault(self._card_in(row), len(self._numbers))
            self._forget_gone()
            self._version, self._mark = table.version, table.journal.mark
        return list(self._numbers), self._own

    def _forget_gone(self) -> None:
        """Drop the kinds that no node has any more, so that nothing follows from them."""
        present = np.bincount(self._own, minlength=len(self._numbers)) > 0
        present[self._numbers[UNKNOWN_CARD]] = True
        if not present.all():
            kept = [card for card, there in zip(self._numbers, present, strict=True) if there]
            self._numbers = {card: number for number, card in enumerate(kept)}
            self._own = (np.cumsum(present) - 1)[self._own]

    def total(self) -> Amounts:
        """Return what all nodes offer together."""
        table = self._table
        moment = table.version, self._ledger.version
        if self._known[0] != moment:
            totals = table.allocatable[:, table.live].sum(axis=1)
            found = {
                name: int(total) * 1000 if name == GPU else int(total)
                for name, total in zip(table.columns.names, totals, strict=False)
            }
            cards, own = self.cards() if self._ledger.by_model else ((), ())
            for number, card in enumerate(cards):
                gpus = int(table.allocatable[GPU_COLUMN, (own == number) & table.live].sum())
                name = f"{MODEL_PREFIX}{card.model}"
                found[name] = found.get(name, 0) + gpus * 1000
            self._known = (moment, found)
        return self._known[1]
