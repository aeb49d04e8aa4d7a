"""Nodes with shared GPUs as columns, and the requests that are put on them.

The unit of a GPU is the milli: 1000 are a whole card. A request takes whole cards, or a share of
one card, and CPU and memory of the same node.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

WHOLE = 1000
"""Milli of a whole card."""


@dataclass(frozen=True, slots=True)
class Request:
    """What a pod asks of one node: CPU in milli, memory in MiB, and *milli* of each of *cards*.

    *models* are the GPU models that will do; none means any.
    """

    cpu: int
    memory: int
    cards: int = 0
    milli: int = 0
    models: frozenset[str] = frozenset()

    @property
    def gpu(self) -> int:
        """Return the GPU milli over all cards."""
        return self.cards * self.milli

    @property
    def shared(self) -> bool:
        """Return whether it asks for a part of a card."""
        return 0 < self.milli < WHOLE


@dataclass(frozen=True, slots=True)
class NodeOffer:
    """What a node has: CPU in milli, memory in MiB, and a number of GPUs of one model."""

    cpu: int
    memory: int
    cards: int = 0
    model: str = ""


class SharedNodes:
    """What is free on every node. Change it through ``take``, read its arrays freely."""

    def __init__(self, offers: Sequence[NodeOffer]) -> None:
        count = len(offers)
        width = max((o.cards for o in offers), default=0)
        self.cpu: IntArray = np.array([o.cpu for o in offers], dtype=np.int64)
        self.memory: IntArray = np.array([o.memory for o in offers], dtype=np.int64)
        self.milli: IntArray = np.zeros((count, max(width, 1)), dtype=np.int64)
        """Free milli of each card; a card that is not there has none."""
        for row, offer in enumerate(offers):
            self.milli[row, : offer.cards] = WHOLE
        self.models: tuple[str, ...] = tuple(dict.fromkeys(o.model for o in offers))
        self.model: IntArray = np.array([self.models.index(o.model) for o in offers])
        self.capacity = int(self.milli.sum())
        """GPU milli of all nodes together."""

    def __len__(self) -> int:
        return len(self.cpu)

    def allowed(self, request: Request) -> BoolArray:
        """Return for each of ``models`` whether it will do for *request*."""
        if not request.models or not request.cards:
            return np.ones(len(self.models), dtype=bool)
        return np.array([model in request.models for model in self.models], dtype=bool)

    def fits(self, request: Request, rows: IntArray | slice) -> BoolArray:
        """Return which of *rows* have room for *request* now."""
        room = (self.cpu[rows] >= request.cpu) & (self.memory[rows] >= request.memory)
        if request.cards:
            room &= (self.milli[rows] >= request.milli).sum(axis=1) >= request.cards
            if request.models:
                room &= self.allowed(request)[self.model[rows]]
        return room

    def whole_cards(self, row: int, count: int) -> tuple[int, ...]:
        """Return the first *count* cards of a node that are wholly free."""
        return tuple(np.flatnonzero(self.milli[row] == WHOLE)[:count].tolist())

    def take(self, row: int, request: Request, cards: Iterable[int]) -> None:
        """Put *request* on the *cards* of a node.

        Raises:
            ValueError: when it does not fit there; nothing is changed then.
        """
        held = list(cards)
        free = self.milli[row]
        if (
            len(set(held)) != request.cards
            or self.cpu[row] < request.cpu
            or self.memory[row] < request.memory
            or any(free[card] < request.milli for card in held)
        ):
            raise ValueError(f"{request} does not fit on cards {held} of row {row}")
        self.cpu[row] -= request.cpu
        self.memory[row] -= request.memory
        for card in held:
            free[card] -= request.milli
