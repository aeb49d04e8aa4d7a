"""Which ranks talk to each other, and how many bytes a rank moves in one training step.

Ranks are numbered as Megatron does it: the axis that the order names first varies fastest. Dense
layers split the world into tensor, context, data and pipeline; layers with experts split the same
world into tensor, expert, data and pipeline, without context. Volumes are those of ring algorithms.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from lockstep.api.parallelism import Model, Parallelism
from lockstep.api.quantity import to_int
from lockstep.scheduler.core.util.array_types import IntArray

DEFAULT_MODEL = Model()


@dataclass(frozen=True, slots=True)
class Collective:
    """Groups of ranks that do the same, each among its own members."""

    name: str
    groups: IntArray
    """One group a row: its ranks. Pipeline neighbours are groups of two."""
    volume: float
    """Bytes that each rank of a group moves in one step."""


@dataclass(frozen=True, slots=True)
class Grid:
    """A world of ranks split along its axes."""

    order: tuple[str, ...]
    sizes: dict[str, int]

    @property
    def world(self) -> int:
        """Return the number of ranks."""
        return prod(self.sizes.values())

    def groups(self, *axes: str) -> IntArray:
        """Return the ranks that differ along *axes* alone, a group a row, in rank order."""
        shape = [self.sizes[axis] for axis in reversed(self.order)]
        ranks = np.arange(self.world, dtype=np.int64).reshape(shape)
        own = [len(self.order) - 1 - place for place, a in enumerate(self.order) if a in axes]
        moved = np.moveaxis(ranks, sorted(own), range(-len(own), 0))
        return moved.reshape(-1, prod(self.sizes[axis] for axis in axes))

    def coordinates(self, ranks: IntArray) -> dict[str, IntArray]:
        """Return by axis where *ranks* stand along it."""
        found, stride = {}, 1
        for axis in self.order:
            found[axis] = ranks // stride % self.sizes[axis]
            stride *= self.sizes[axis]
        return found


def grids(split: Parallelism, ranks: int) -> tuple[Grid, Grid]:
    """Return how dense layers and how layers with experts split *ranks*.

    The data degree follows from the others; ranks that are too few for one more copy of the model
    are left out.

    Raises:
        ValueError: when the order is none, or the ranks do not hold one copy of the model.
    """
    order = split.axes()
    copy = split.tensor * split.context * split.pipeline
    data = ranks // copy
    if not data:
        raise ValueError(f"{ranks} ranks do not hold tensor x context x pipeline = {copy}")
    sizes = {"tp": split.tensor, "cp": split.context, "dp": data, "pp": split.pipeline}
    dense = Grid(tuple(axis for axis in order if axis != "ep"), sizes)
    inside = split.tensor * split.expert * split.pipeline
    if dense.world % inside:  # what is left of a growing job: no whole set of experts for each
        return dense, Grid(dense.order, sizes)
    expert = {"tp": split.tensor, "ep": split.expert, "dp": dense.world // inside}
    expert["pp"] = split.pipeline
    return dense, Grid(tuple(axis for axis in order if axis != "cp"), expert)


def tensor_stride(split: Parallelism, ranks: int) -> int:
    """Return how far apart two neighbours of a tensor group are, of so many ranks.

    Where nothing sensible is said of the order, or the ranks do not hold one copy of the model,
    they are taken to be neighbours by number.
    """
    try:
        grid = grids(split, ranks)[0]
    except ValueError:
        return 1
    return prod(grid.sizes[axis] for axis in grid.order[: grid.order.index("tp")])


def collectives(split: Parallelism, ranks: int) -> list[Collective]:
    """Return which ranks talk to each other, and how much, in one step of a job with so many ranks.

    Raises:
        ValueError: as for ``grids``.
    """
    model = split.model or DEFAULT_MODEL
    dense, expert = grids(split, ranks)
    found = [
        Collective("tensor", dense.groups("tp"), _tensor(split, model)),
        Collective("context", dense.groups("cp"), _context(split, model)),
        Collective("data", dense.groups("cp", "dp"), _data(split, model, dense)),
        Collective("pipeline", _neighbours(dense.groups("pp")), _pipeline(split, model)),
    ]
    if expert.sizes.get("ep", 1) > 1:
        found.append(Collective("expert", expert.groups("ep"), _expert(split, model)))
        if to_int(model.expert_parameters):
            volume = _expert_data(split, model, expert.sizes["dp"])
            found.append(Collective("expert data", expert.groups("dp"), volume))
    return [one for one in found if one.groups.size and one.groups.shape[1] > 1]


def _neighbours(stages: IntArray) -> IntArray:
    return np.stack([stages[:, :-1], stages[:, 1:]], axis=-1).reshape(-1, 2)


def _micro_batch(split: Parallelism, model: Model) -> float:
    """Return the bytes of one micro-batch's activations on one rank of a context group."""
    tokens = model.sequence * model.micro_batch / split.context
    return model.activation_bytes * tokens * model.hidden


def _tensor(split: Parallelism, model: Model) -> float:
    share = (split.tensor - 1) / split.tensor
    layers = model.layers / split.pipeline
    return 8 * share * _micro_batch(split, model) * layers * model.micro_batches


def _context(split: Parallelism, model: Model) -> float:
    share = (split.context - 1) / split.context
    hidden = (model.key_value_hidden or model.hidden) / split.tensor
    tokens = model.sequence * model.micro_batch
    # Keys and values go around once forward and twice backward.
    once = share * 2 * tokens * hidden * model.activation_bytes
    return 3 * once * model.layers / split.pipeline * model.micro_batches


def _ring(model: Model, members: int) -> float:
    return (3 if model.sharded else 2) * (members - 1) / members * model.gradient_bytes


def _data(split: Parallelism, model: Model, dense: Grid) -> float:
    members = dense.sizes["cp"] * dense.sizes["dp"]
    dense_layers = max(0, to_int(model.parameters) - to_int(model.expert_parameters))
    return _ring(model, members) * dense_layers / (split.tensor * split.pipeline)


def _expert_data(split: Parallelism, model: Model, members: int) -> float:
    own = to_int(model.expert_parameters) / (split.tensor * split.pipeline * split.expert)
    return _ring(model, members) * own


def _expert(split: Parallelism, model: Model) -> float:
    share = (split.expert - 1) / split.expert
    once = share * _micro_batch(split, model) * model.experts_per_token / split.tensor
    layers = (model.expert_layers or model.layers) / split.pipeline
    return 4 * once * layers * model.micro_batches


def _pipeline(split: Parallelism, model: Model) -> float:
    """Return what one boundary moves forward and back, each rank of a tensor group its share."""
    return 2 * _micro_batch(split, model) / split.tensor * model.micro_batches
