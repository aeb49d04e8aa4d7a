"""Nodes with shared GPUs as columns, and the requests that are put on them.

The workload of a GPU is the milli: 1000 are a whole card. A request takes whole cards, or a share
of one card, and CPU and memory of the same node."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from lockstep.scheduler.core.util.array_types import BoolArray, IntArray

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


class Extent(NamedTuple):
    """What the nodes have when nothing is used: together, and the largest of them."""

    cpu: int
    memory: int
    gpu: int
    """GPU milli."""
    largest_cpu: int
    largest_gpu: int


@dataclass(slots=True)
class GpuMilliNodes:
    """What is free on every node, a row each. Change it through ``take``, read it freely.

    *cpu* is in milli, *memory* in MiB; *milli* is what is free of each card, none of cards that are
    not there; *model* is the place of the node's GPU model in *models*.
    """

    cpu: IntArray
    memory: IntArray
    milli: IntArray
    model: IntArray
    models: tuple[str, ...]
    extent: Extent
    idle: IntArray = field(init=False)
    """Free milli over all cards of a node."""
    whole: IntArray = field(init=False)
    """Cards of a node that are wholly free."""

    def __post_init__(self) -> None:
        self.idle = self.milli.sum(axis=1)
        self.whole = (self.milli == WHOLE).sum(axis=1)

    @classmethod
    def fresh(cls, offers: Sequence[NodeOffer]) -> GpuMilliNodes:
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

    def __len__(self) -> int:
        return len(self.cpu)

    @property
    def capacity(self) -> int:
        """Return the GPU milli of all nodes together when nothing is used."""
        return self.extent.gpu

    def of_models(self, wanted: frozenset[str]) -> BoolArray:
        """Return for each of ``models`` whether it is one of those *wanted*; none means any."""
        return np.array([not wanted or model in wanted for model in self.models], dtype=bool)

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


def extent_of(cpu: IntArray, memory: IntArray, gpu: IntArray) -> Extent:
    """Return the extent of nodes that have so much each: CPU and GPUs in milli, memory in MiB."""
    largest = int(cpu.max(initial=0)), int(gpu.max(initial=0))
    return Extent(int(cpu.sum()), int(memory.sum()), int(gpu.sum()), *largest)
