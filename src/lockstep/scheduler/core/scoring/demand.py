"""What usually comes, summed up the ways in which placements are judged by it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import sqrt

from lockstep.scheduler.core.scoring.gpu_milli import WHOLE, Request

CPU_STEP = 8000
"""CPU milli by which requests for one GPU are told apart; what they ask is rounded up."""
TIGHT, SHORT = 0.9, 1.0
"""Of another resource, what all requests ask over what there is: from where it is short, and where
it is so altogether."""
RESERVE = 0.3
"""How much more of it is then kept beside idle GPUs: pods without GPUs will take it from there."""


@dataclass(frozen=True, slots=True)
class PerGpu:
    """How much of another resource a GPU in use takes: its mean, and the spread around it."""

    mean: float
    deviation: float


@dataclass(frozen=True, slots=True)
class Shape:
    """A request for whole cards of one node, of any model."""

    cards: int
    cpu: int
    memory: int


class Demand:
    """How often each request comes, in any workload: counts of the past, or expected rates."""

    def __init__(self, rates: Mapping[Request, float]) -> None:
        self.rates = dict(rates)
        self._gpus = {request: rate for request, rate in self.rates.items() if request.gpu}
        self.gpu = sum(request.gpu * rate for request, rate in self._gpus.items())
        """GPU milli of all together."""

    @classmethod
    def of(cls, requests: Iterable[Request]) -> Demand:
        """Count the requests that came."""
        return cls(Counter(requests))

    def sizes(self) -> dict[int, float]:
        """Return how often each size is asked of a card, in milli of it."""
        found: dict[int, float] = {}
        for request, rate in self._gpus.items():
            found[request.milli] = found.get(request.milli, 0.0) + request.cards * rate
        return found

    def model_sets(self) -> dict[frozenset[str], float]:
        """Return the share of the GPU milli that is asked of each set of models; none is any."""
        found: dict[frozenset[str], float] = {}
        for request, rate in self._gpus.items():
            share = request.gpu * rate / self.gpu
            found[request.models] = found.get(request.models, 0.0) + share
        return found

    def whole(self) -> dict[tuple[Shape, frozenset[str]], float]:
        """Return the share of the GPU milli that is asked as whole cards, by shape and models.

        Requests for one card are many and alike: they are told apart by steps of CPU alone.
        """
        found: dict[tuple[Shape, frozenset[str]], float] = {}
        for request, rate in self._gpus.items():
            if request.milli != WHOLE:
                continue
            shape = Shape(request.cards, request.cpu, request.memory)
            if request.cards == 1:
                shape = Shape(1, -(-request.cpu // CPU_STEP) * CPU_STEP, 0)
            share = request.gpu * rate / self.gpu
            found[shape, request.models] = found.get((shape, request.models), 0.0) + share
        return found

    def cpu_per_gpu(self, supply: float) -> PerGpu:
        """Return the CPU milli that go with a GPU in use, where the cluster has *supply* a GPU."""
        return self._beside({request: request.cpu for request in self.rates}, supply)

    def memory_per_gpu(self, supply: float) -> PerGpu:
        """Return the MiB of memory likewise."""
        return self._beside({request: request.memory for request in self.rates}, supply)

    def _beside(self, amounts: Mapping[Request, int], supply: float) -> PerGpu:
        gpus = self.gpu / WHOLE
        if not gpus:
            return PerGpu(0.0, 0.0)
        asked = sum(amounts[r] * rate for r, rate in self.rates.items()) / gpus
        tight = (asked / supply - TIGHT) / (SHORT - TIGHT) if supply else 0.0
        mean = sum(amounts[r] * rate for r, rate in self._gpus.items()) / gpus
        # The demand of many small requests spreads less than that of few large ones; large ones
        # are few on a node, and which of them come is chosen by what they need.
        single = sum(
            rate * (amounts[r] - mean * r.gpu / WHOLE) ** 2
            for r, rate in self._gpus.items()
            if r.cards == 1
        )
        return PerGpu(mean * (1 + RESERVE * min(max(tight, 0.0), 1.0)), sqrt(single / gpus))
