"""The nodes of a list while requests are put on them one by one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from lockstep.scheduler.core.scoring.gpu_milli import WHOLE, GpuMilliNodes, Request, extent_of
from lockstep.scheduler.core.util.array_types import BoolArray, IntArray


@dataclass(frozen=True, slots=True)
class NodeOffer:
    """What a node has: CPU in milli, memory in MiB, and a number of GPUs of one model."""

    cpu: int
    memory: int
    cards: int = 0
    model: str = ""


class ListedNodes(GpuMilliNodes):
    """What is free on the nodes of a list. Change it through ``take``, read it freely."""

    __slots__ = ()

    @classmethod
    def fresh(cls, offers: Sequence[NodeOffer]) -> Self:
        """Return nodes of which nothing is used."""
        width = max((offer.cards for offer in offers), default=0)
        milli = np.zeros((len(offers), max(width, 1)), dtype=np.int64)
        for row, offer in enumerate(offers):
            milli[row, : offer.cards] = WHOLE
        models = tuple(dict.fromkeys(offer.model for offer in offers))
        cpu = np.array([offer.cpu for offer in offers], dtype=np.int64)
        memory = np.array([offer.memory for offer in offers], dtype=np.int64)
        model = np.array([models.index(offer.model) for offer in offers], dtype=np.int64)
        return cls(cpu, memory, milli, model, models, extent_of(cpu, memory, milli.sum(axis=1)))

    def allowed(self, request: Request) -> BoolArray:
        """Return for each of ``models`` whether it will do for *request*."""
        return self.of_models(request.models if request.cards else frozenset())

    def fits(self, request: Request, rows: IntArray | slice) -> BoolArray:
        """Return which of *rows* have room for *request* now."""
        room = (self.cpu[rows] >= request.cpu) & (self.memory[rows] >= request.memory)
        if request.cards:
            if request.milli == WHOLE:
                room &= self.whole[rows] >= request.cards
            else:
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
            self.whole[row] -= free[card] == WHOLE
            free[card] -= request.milli
        self.idle[row] -= request.gpu
