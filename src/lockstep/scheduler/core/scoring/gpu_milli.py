"""Nodes with shared GPUs as columns, and the requests that are put on them.

The workload of a GPU is the milli: 1000 are a whole card. A request takes whole cards, or a share
of one card, and CPU and memory of the same node."""

from __future__ import annotations

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
    """What is free on every node, a row each.

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

    def __len__(self) -> int:
        return len(self.cpu)

    @property
    def capacity(self) -> int:
        """Return the GPU milli of all nodes together when nothing is used."""
        return self.extent.gpu

    def of_models(self, wanted: frozenset[str]) -> BoolArray:
        """Return for each of ``models`` whether it is one of those *wanted*; none means any."""
        return np.array([not wanted or model in wanted for model in self.models], dtype=bool)


def extent_of(cpu: IntArray, memory: IntArray, gpu: IntArray) -> Extent:
    """Return the extent of nodes that have so much each: CPU and GPUs in milli, memory in MiB."""
    largest = int(cpu.max(initial=0)), int(gpu.max(initial=0))
    return Extent(int(cpu.sum()), int(memory.sum()), int(gpu.sum()), *largest)
