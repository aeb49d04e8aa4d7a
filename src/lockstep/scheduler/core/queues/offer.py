"""What the nodes offer, in the units of the queues' accounts."""

from __future__ import annotations

from lockstep.api.names import GPU, GPU_MODEL_LABEL
from lockstep.scheduler.core.nodes import NodeTable
from lockstep.scheduler.core.queues.account import MODEL_PREFIX, UNKNOWN_CARD, Amounts, Card
from lockstep.scheduler.core.queues.ledger import Ledger


class Offer:
    """What there is to be divided among the queues; counted anew only where nodes changed."""

    def __init__(self, table: NodeTable, ledger: Ledger) -> None:
        self._table = table
        self._ledger = ledger
        self._known: tuple[tuple[int, int], Amounts] = ((-1, -1), {})

    def card(self, node: str) -> Card:
        """Return what a node's GPUs are like, as far as it says."""
        row = self._table.rows.get(node)
        facts = self._table.facts[row] if row is not None else None
        if facts is None:
            return UNKNOWN_CARD
        memory = facts.layout.cards[0].memory if facts.layout.cards else 0
        return Card(facts.labels.get(GPU_MODEL_LABEL, ""), memory)

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
            for node in table.rows if self._ledger.by_model else ():
                gpus = int(table.allocatable[table.columns.id(GPU), table.rows[node]]) * 1000
                name = f"{MODEL_PREFIX}{self.card(node).model}"
                found[name] = found.get(name, 0) + gpus
            self._known = (moment, found)
        return self._known[1]
