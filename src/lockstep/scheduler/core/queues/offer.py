"""What the nodes offer, in the units of the queues' accounts."""

from __future__ import annotations

import numpy as np

from lockstep.api.names import GPU, GPU_MODEL_LABEL
from lockstep.scheduler.core.labels import BoolArray
from lockstep.scheduler.core.nodes import IntArray, NodeTable
from lockstep.scheduler.core.queues.account import MODEL_PREFIX, UNKNOWN_CARD, Amounts, Card
from lockstep.scheduler.core.queues.ledger import Ledger
from lockstep.scheduler.core.resources import GPU_COLUMN


class Offer:
    """What there is to be divided among the queues; counted anew only where nodes changed."""

    def __init__(self, table: NodeTable, ledger: Ledger) -> None:
        self._table = table
        self._ledger = ledger
        self._known: tuple[tuple[int, int], Amounts] = ((-1, -1), {})
        self._kinds: tuple[int, list[Card], IntArray] = (-1, [], np.zeros(0, dtype=np.int64))

    def card(self, node: str) -> Card:
        """Return what a node's GPUs are like, as far as it says."""
        row = self._table.rows.get(node)
        facts = self._table.facts[row] if row is not None else None
        if facts is None:
            return UNKNOWN_CARD
        memory = facts.layout.cards[0].memory if facts.layout.cards else 0
        return Card(facts.labels.get(GPU_MODEL_LABEL, ""), memory)

    def cards(self) -> tuple[list[Card], IntArray]:
        """Return what kinds of GPUs there are, and by row of the nodes which of them it has."""
        table = self._table
        if self._kinds[0] != table.version:
            numbers: dict[Card, int] = {UNKNOWN_CARD: 0}
            own = np.zeros(table.capacity, dtype=np.int64)
            for node, row in table.rows.items():
                own[row] = numbers.setdefault(self.card(node), len(numbers))
            self._kinds = table.version, list(numbers), own
        return self._kinds[1:]

    def of_model(self, model: str) -> BoolArray:
        """Return by row whether a node has GPUs of a model."""
        cards, own = self.cards()
        found: BoolArray = np.array([card.model == model for card in cards])[own]
        return found

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
