"""Where a request leaves the most for those that usually come after it.

Every place is judged by the GPU milli that are expected to be lost by it:

- what the rest of the card was worth to the usual shares, and what it is worth after;
- how much of the node's idle GPUs will be stranded for want of CPU or memory;
- how much whole-card demand could have used the node and no longer can, weighed by how few other
  places that demand has;
- and how sought-after the node's GPU model is: the demand that will fall on it for each idle milli.

Nothing looks at arrivals to come, only at how often requests come.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lockstep.scheduler.core.fragmentation_cards import worth_of_rest
from lockstep.scheduler.core.fragmentation_demand import Demand
from lockstep.scheduler.core.fragmentation_shortage import Shortage
from lockstep.scheduler.core.fragmentation_state import WHOLE, IntArray, Request, SharedNodes

FloatArray = NDArray[np.float64]

NO_CARD = -1
"""In place of a shared card: the first free ones, or none at all."""
WHOLE_WEIGHT = 0.1
"""Milli lost for each milli of whole-card demand that can use a node no more, where that demand
falls as densely on it as on the average node."""
SEVERAL_WEIGHT = 9.0
"""How much more that counts for requests of several cards; it grows with the square of how densely
they fall on the nodes that are left to them, for nothing smaller makes up for such a node."""
TIDINESS = 10.0
"""Milli by which a full node is liked better than the emptiest, where places cost the same."""
DENSEST = 5.0
"""Bound of how sought-after a model counts, as a multiple of the average."""
RAREST = 0.05


class _States(NamedTuple):
    """What of some nodes matters to whole cards and to stranding."""

    cpu: IntArray
    memory: IntArray
    idle: IntArray
    whole: IntArray
    model: IntArray

    @classmethod
    def of(cls, nodes: SharedNodes, rows: IntArray) -> _States:
        return cls(
            nodes.cpu[rows],
            nodes.memory[rows],
            nodes.idle[rows],
            nodes.whole[rows],
            nodes.model[rows],
        )

    def less(self, request: Request, whole: int) -> _States:
        """Return them with *request* on each, which begins that many whole cards."""
        return _States(
            self.cpu - request.cpu,
            self.memory - request.memory,
            self.idle - request.gpu,
            self.whole - whole,
            self.model,
        )


class Foresight:
    """Rates places for requests by what usually comes."""

    def __init__(self, nodes: SharedNodes, demand: Demand) -> None:
        self.worth = worth_of_rest(demand.sizes())
        gpus = max(nodes.capacity / WHOLE, 1.0)
        self._shortage = Shortage(
            demand.cpu_per_gpu(float(nodes.cpu.sum()) / gpus),
            demand.memory_per_gpu(float(nodes.memory.sum()) / gpus),
        )
        self._whole = demand.whole()
        shapes = list(dict.fromkeys(shape for shape, _ in self._whole))
        self._place = {shape: i for i, shape in enumerate(shapes)}
        self._cards = np.array([shape.cards for shape in shapes], dtype=np.int64)
        self._shape_cpu = np.array([shape.cpu for shape in shapes], dtype=np.int64)
        self._shape_memory = np.array([shape.memory for shape in shapes], dtype=np.int64)
        self._sets = demand.model_sets()
        self._tidy_cpu = TIDINESS / max(int(nodes.cpu.max()), 1)
        self._tidy_gpu = TIDINESS / max(int(nodes.idle.max()), 1)
        self._weights = np.zeros((len(nodes.models), len(shapes)))
        self.reweigh(nodes)

    def reweigh(self, nodes: SharedNodes) -> None:
        """Weigh whole-card demand by the room that is left for it now.

        Ratings from before and after do not compare.
        """
        states = _States.of(nodes, np.arange(len(nodes)))
        total = int(states.idle.sum())
        self._weights[:] = 0.0
        for (shape, models), share in self._whole.items():
            allowed = _allowed(nodes, models)
            holds = (states.whole >= shape.cards) & allowed[states.model]
            holds &= (states.cpu >= shape.cpu) & (states.memory >= shape.memory)
            room = int(states.whole[holds].sum()) * WHOLE
            if not room:
                continue
            density = share * total / room
            if shape.cards > 1:
                density = SEVERAL_WEIGHT * density**2
            self._weights[allowed, self._place[shape]] += density

    def sought(self, nodes: SharedNodes) -> FloatArray:
        """Return how sought-after each model is now; one is the average over idle GPUs."""
        idle = np.bincount(nodes.model, weights=nodes.idle, minlength=len(nodes.models))
        total = idle.sum()
        load = np.zeros(len(idle))
        for models, share in self._sets.items():
            offered = np.where(_allowed(nodes, models), idle, 0.0)
            if offered.any():
                load += share * total * offered / offered.sum()
        return np.clip(load / np.maximum(idle, WHOLE), RAREST, DENSEST)

    def rate(
        self, nodes: SharedNodes, rows: IntArray, request: Request
    ) -> tuple[FloatArray, IntArray]:
        """Return for each of *rows*, all of which fit, its rating and the card to share.

        The rating is minus the milli expected to be lost, without regard to the model.
        """
        before = _States.of(nodes, rows)
        if not request.shared:
            after = before.less(request, request.cards)
            stays, leaves = self._values(before, after)
            return leaves - stays - self._untidy(after), np.full(len(rows), NO_CARD)
        after = before.less(request, 0)
        stays, shares, opens = self._values(before, after, before.less(request, 1))
        free = nodes.milli[rows]
        rest = self.worth[np.maximum(free - request.milli, 0)] - self.worth[free]
        rest[(free < request.milli) | (free == WHOLE)] = -np.inf
        card = rest.argmax(axis=1)
        shares += rest[np.arange(len(rows)), card]
        opens += self.worth[WHOLE - request.milli] - self.worth[WHOLE]
        opens[before.whole == 0] = -np.inf
        card = np.where(opens > shares, (free == WHOLE).argmax(axis=1), card)
        return np.maximum(shares, opens) - stays - self._untidy(after), card

    def _values(self, *states: _States) -> FloatArray:
        """Return what nodes are worth in each of several states, less what will be stranded."""
        cpu, memory, idle, whole, model = map(np.concatenate, zip(*states, strict=True))
        holds = whole[:, None] >= self._cards
        holds &= cpu[:, None] >= self._shape_cpu
        holds &= memory[:, None] >= self._shape_memory
        room = (self._weights[model] * holds).sum(axis=1) * whole
        found: FloatArray = WHOLE_WEIGHT * WHOLE * room
        found -= self._shortage.stranded(idle, cpu, memory)
        return found.reshape(len(states), -1)

    def _untidy(self, states: _States) -> FloatArray:
        untidy: FloatArray = states.cpu * self._tidy_cpu + states.idle * self._tidy_gpu
        return untidy


def _allowed(nodes: SharedNodes, models: frozenset[str]) -> NDArray[np.bool_]:
    return np.array([not models or model in models for model in nodes.models], dtype=bool)
