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

from lockstep.scheduler.core.scoring.card_value import worth_of_rest
from lockstep.scheduler.core.scoring.demand import Demand, Shape
from lockstep.scheduler.core.scoring.gpu_milli import WHOLE, GpuMilliNodes, Request
from lockstep.scheduler.core.scoring.stranded_gpus import Shortage
from lockstep.scheduler.core.util.array_types import FloatArray, IntArray

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
TIGHTNESS = 0.02
"""Milli by which a card is liked less for each that it would have left, where worths are equal."""
DENSEST = 5.0
"""Bound of how sought-after a model counts, as a multiple of the average."""
RAREST = 0.05
REWEIGH = 0.05
"""Part of the cluster's GPUs that is given out or back between two looks at what room is left to
whom."""
REPRICE = 0.01
"""The same for how sought-after each model is."""
LOOK = 0.002
"""Part of the GPUs or of the CPUs that is given out or back between two looks at whether the room
for requests of several cards shrinks faster than that."""
MOVED = 0.25
"""By how much the weight of such a request moves, with one the part of what it was, before all are
weighed anew: pods that take no GPU can fill the last nodes for it between two strides."""


class Spots(NamedTuple):
    """What of some nodes a request looks at; a row each."""

    cpu: IntArray
    memory: IntArray
    milli: IntArray
    """Free milli by card."""
    idle: IntArray
    whole: IntArray
    model: IntArray

    @classmethod
    def of(cls, nodes: GpuMilliNodes, rows: IntArray) -> Spots:
        """Return some nodes as they are."""
        return cls(
            nodes.cpu[rows],
            nodes.memory[rows],
            nodes.milli[rows],
            nodes.idle[rows],
            nodes.whole[rows],
            nodes.model[rows],
        )


class _States(NamedTuple):
    """What of some nodes matters to whole cards and to stranding."""

    cpu: IntArray
    memory: IntArray
    idle: IntArray
    whole: IntArray

    def less(self, request: Request, gpu: IntArray | int, whole: int) -> _States:
        """Return them with *request* on each: *gpu* milli, which begin that many whole cards."""
        return _States(
            self.cpu - request.cpu,
            self.memory - request.memory,
            self.idle - gpu,
            self.whole - whole,
        )


class Foresight:
    """Rates places for requests by what usually comes."""

    def __init__(
        self, nodes: GpuMilliNodes, demand: Demand, worth: FloatArray | None = None
    ) -> None:
        """Look at what *nodes* there are; the *worth* of rests may be given, which takes long."""
        self.worth = worth_of_rest(demand.sizes()) if worth is None else worth
        extent = nodes.extent
        gpus = max(extent.gpu / WHOLE, 1.0)
        self._shortage = Shortage(
            demand.cpu_per_gpu(extent.cpu / gpus), demand.memory_per_gpu(extent.memory / gpus)
        )
        self._whole = demand.whole()
        shapes = list(dict.fromkeys(shape for shape, _ in self._whole))
        self._place = {shape: i for i, shape in enumerate(shapes)}
        self._cards = np.array([shape.cards for shape in shapes], dtype=np.int64)
        self._shape_cpu = np.array([shape.cpu for shape in shapes], dtype=np.int64)
        self._shape_memory = np.array([shape.memory for shape in shapes], dtype=np.int64)
        self._sets = demand.model_sets()
        self._tidy_cpu = TIDINESS / max(extent.largest_cpu, 1)
        self._tidy_gpu = TIDINESS / max(extent.largest_gpu, 1)
        self._weights = np.zeros((len(nodes.models), len(shapes)))
        self._several: dict[tuple[Shape, frozenset[str]], float] = {}
        self.price: FloatArray = np.ones(len(nodes.models))
        """What an idle milli of each model costs the pod that takes it, beside what places cost."""
        self.weighed = self.priced = 0
        """Move with the weights and with the price: ratings of before do not compare."""
        self._weighed_at = self._priced_at = 0
        self._seen = (0, 0)
        self._reweigh(nodes, int(nodes.idle.sum()))
        self._reprice(nodes, self._weighed_at)

    def keep_up(self, nodes: GpuMilliNodes) -> None:
        """Look afresh at what room is left to which pods once enough has been given out or back."""
        idle = int(nodes.idle.sum())
        if abs(idle - self._priced_at) >= REPRICE * nodes.capacity:
            self._reprice(nodes, idle)
        far = abs(idle - self._weighed_at) >= REWEIGH * nodes.capacity
        if far or self._room_moved(nodes, idle):
            self._reweigh(nodes, idle)

    def _room_moved(self, nodes: GpuMilliNodes, idle: int) -> bool:
        """Return whether requests of several cards weigh clearly more or less than last time."""
        cpu = int(nodes.cpu.sum())
        gpu_seen, cpu_seen = self._seen
        near = abs(idle - gpu_seen) < LOOK * nodes.capacity
        if near and abs(cpu - cpu_seen) < LOOK * nodes.extent.cpu:
            return False
        self._seen = idle, cpu
        return any(
            abs(self._weight(nodes, shape, models, idle) - then) >= MOVED * (1.0 + then)
            for (shape, models), then in self._several.items()
        )

    def _reweigh(self, nodes: GpuMilliNodes, total: int) -> None:
        """Weigh whole-card demand by the room that is left for it now."""
        self._weighed_at = total
        self.weighed += 1
        self._weights[:] = 0.0
        for shape, models in self._whole:
            weight = self._weight(nodes, shape, models, total)
            self._weights[nodes.of_models(models), self._place[shape]] += weight
            if shape.cards > 1:
                self._several[shape, models] = weight

    def _weight(
        self, nodes: GpuMilliNodes, shape: Shape, models: frozenset[str], total: int
    ) -> float:
        """Return how much a milli counts of what holds *shape*; none where nothing does."""
        holds = (nodes.whole >= shape.cards) & nodes.of_models(models)[nodes.model]
        holds &= (nodes.cpu >= shape.cpu) & (nodes.memory >= shape.memory)
        room = int(nodes.whole[holds].sum()) * WHOLE
        density = self._whole[shape, models] * total / room if room else 0.0
        return float(SEVERAL_WEIGHT * density**2 if shape.cards > 1 else density)

    def _reprice(self, nodes: GpuMilliNodes, total: int) -> None:
        """Find how sought-after each model is now; one is the average over idle GPUs."""
        self._priced_at = total
        self.priced += 1
        idle = np.bincount(nodes.model, weights=nodes.idle, minlength=len(nodes.models))
        load = np.zeros(len(idle))
        for models, share in self._sets.items():
            offered = np.where(nodes.of_models(models), idle, 0.0)
            if offered.any():
                load += share * total * offered / offered.sum()
        self.price = np.clip(load / np.maximum(idle, WHOLE), RAREST, DENSEST)

    def rate(
        self, nodes: GpuMilliNodes, rows: IntArray, request: Request
    ) -> tuple[FloatArray, IntArray]:
        """Return for each of *rows*, all of which fit, its rating and the (first) card to share.

        The rating is minus the milli expected to be lost, without regard to the model.
        """
        spots = Spots.of(nodes, rows)
        if not request.shared:
            return self.rate_whole(spots, request), np.full(len(rows), NO_CARD)
        rating, opened, gains = self.rate_share(spots, request, spots.milli - request.milli)
        first = (spots.milli == WHOLE).argmax(axis=1)
        return rating, np.where(opened == request.cards, first, gains.argmax(axis=1))

    def rate_whole(self, spots: Spots, request: Request) -> FloatArray:
        """Return the rating of spots for a request of whole cards or none."""
        before = _States(spots.cpu, spots.memory, spots.idle, spots.whole)
        after = before.less(request, request.gpu, request.cards)
        stays, leaves = self._values(spots.model, before, after)
        rating: FloatArray = leaves - stays - self._untidy(after)
        return rating

    def rate_share(
        self, spots: Spots, request: Request, left: IntArray
    ) -> tuple[FloatArray, IntArray, FloatArray]:
        """Return the rating of spots for shares; *left* is what each card would have left.

        It is below 0 where a card has no room. Beside the rating comes how many unused
        cards would be begun, and the gain of the others.
        """
        free = spots.milli
        before = _States(spots.cpu, spots.memory, spots.idle, spots.whole)
        taken = np.where(left >= 0, free - left, 0).max(axis=1)
        gains = self.worth[np.maximum(left, 0)] - self.worth[free]
        gains -= TIGHTNESS * left
        gains[(left < 0) | (free == WHOLE)] = -np.inf
        first = (free == WHOLE).argmax(axis=1)
        at_first = left[np.arange(len(free)), first]
        opening = self.worth[np.maximum(at_first, 0)] - self.worth[WHOLE]
        opening -= TIGHTNESS * at_first
        opening[(before.whole == 0) | (at_first < 0)] = -np.inf
        most = request.cards
        values = self._values(
            spots.model,
            before,
            *(before.less(request, taken * most, opened) for opened in range(most + 1)),
        )
        rest = values[1:]
        for beside in range(1, most + 1):
            best = gains.max(axis=1) if beside == 1 else _best(gains, beside)
            rest[most - beside] += best
        for opened in range(1, most + 1):
            rest[opened] += np.where(before.whole >= opened, opening * opened, -np.inf)
        opened = rest.argmax(axis=0)
        untidy = self._untidy(before.less(request, taken * most, 0))
        return rest.max(axis=0) - values[0] - untidy, opened, gains

    def _values(self, model: IntArray, *states: _States) -> FloatArray:
        """Return what nodes are worth in each of several states, less what will be stranded."""
        cpu, memory, idle, whole = map(np.concatenate, zip(*states, strict=True))
        holds = whole[:, None] >= self._cards
        holds &= cpu[:, None] >= self._shape_cpu
        holds &= memory[:, None] >= self._shape_memory
        each = holds.reshape(len(states), len(model), -1)
        room = (self._weights[model] * each).sum(axis=2).ravel() * whole
        found: FloatArray = WHOLE_WEIGHT * WHOLE * room
        found -= self._shortage.stranded(np.maximum(idle, 0), cpu, memory)
        return found.reshape(len(states), -1)

    def _untidy(self, states: _States) -> FloatArray:
        untidy: FloatArray = states.cpu * self._tidy_cpu + states.idle * self._tidy_gpu
        return untidy


def _best(gains: FloatArray, count: int) -> FloatArray:
    """Return the sum of the *count* best gains of each row."""
    if count > gains.shape[1]:
        return np.full(len(gains), -np.inf)
    found: FloatArray = -np.sort(-gains, axis=1)[:, :count].sum(axis=1)
    return found
