"""Queues that always have more jobs than room: how far their use is from their shares."""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from tests.support.simulated_jobs import job

from lockstep.api.queue import Queue
from lockstep.nodes.simulated.spec import parse
from lockstep.sim.engine.options import Options
from lockstep.sim.engine.simulation import Simulation
from lockstep.sim.input.initial_cluster import InitialCluster, initial_cluster_of, view
from lockstep.sim.input.jobs import read_jobs

GPU = "nvidia.com/gpu"
WINDOW = 10
"""Mean run times over which use is averaged."""
Part = tuple[str | None, int, int]
"""Of a queue its parent, its weight and the GPUs that it is guaranteed."""


class Deviation(NamedTuple):
    """How far queues were from their shares at worst."""

    average: float
    """Part of the cluster by which a queue's use was off over any ten mean run times."""
    moment: float
    """GPUs by which a queue's use was off at any moment."""


@dataclass(frozen=True)
class Saturated:
    """A tree of queues over nodes, and by leaf the sizes of its jobs (pods x GPUs)."""

    tree: dict[str, Part]
    nodes: str
    sizes: dict[str, tuple[str, ...]]
    runs: tuple[int, int] = (20, 180)
    """The shortest and the longest run time, in seconds."""
    seed: int = 1
    half_life: str = ""
    lasts: int = 15
    """Mean run times that are played."""

    @property
    def capacity(self) -> int:
        """Return the GPUs of the cluster."""
        nodes, _, gpus = self.nodes.partition("x")
        return int(nodes) * int(gpus)

    @property
    def mean(self) -> float:
        """Return the mean run time."""
        return sum(self.runs) / 2

    @property
    def largest(self) -> int:
        """Return the GPUs of the largest job."""
        return max(_gpus(size) for sizes in self.sizes.values() for size in sizes)

    def due(self) -> dict[str, float]:
        """Return by leaf its guaranteed amount and its part by weight of what is left."""
        found: dict[str, float] = {}
        pending: list[tuple[str | None, float]] = [(None, self.capacity)]
        while pending:
            above, amount = pending.pop()
            parts = {name: one for name, one in self.tree.items() if one[0] == above}
            left = amount - sum(guaranteed for _, _, guaranteed in parts.values())
            weights = sum(weight for _, weight, _ in parts.values())
            for name, (_, weight, guaranteed) in parts.items():
                found[name] = guaranteed + left * weight / weights
                pending.append((name, found[name]))
        return {name: found[name] for name in self.sizes}

    def world(self) -> InitialCluster:
        """Return the nodes and the queues."""
        world = initial_cluster_of(parse(self.nodes))
        for name, (parent, weight, guaranteed) in self.tree.items():
            spec: dict[str, Any] = {"weight": weight, "parent": parent}
            spec |= {"guaranteed": {GPU: guaranteed}} if guaranteed else {}
            spec |= {"usageHalfLife": self.half_life} if self.half_life else {}
            world.queues.append(view({"metadata": {"name": name}, "spec": spec}, Queue))
        return world

    def jobs(self) -> Iterator[Any]:
        """Yield more jobs of each leaf than run while it has its share, and some beyond it."""
        chance, due = random.Random(self.seed), self.due()  # noqa: S311  seeded
        for leaf, sizes in self.sizes.items():
            mean = sum(map(_gpus, sizes)) / len(sizes)
            for number in range(int(1.3 * (due[leaf] + mean) * self.lasts / mean) + self.capacity):
                runs, size = chance.randint(*self.runs), chance.choice(sizes)
                yield job(f"{leaf.lower()}-{number:04}", size, at=0, runs=runs, queue=leaf)


def _gpus(size: str) -> int:
    pods, _, gpus = size.partition("x")
    return int(pods) * int(gpus)


class _Metered(Simulation):
    """Notes what queues use, whenever that changes."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.moments: list[float] = []
        self.uses: list[dict[str, float]] = []
        advance = self._meter.advance

        def noted(now: float) -> None:
            if not self.moments or now > self.moments[-1]:
                self.moments.append(now)
                self.uses.append(dict(self._meter._by_queue))
            advance(now)

        self._meter.advance = noted  # type: ignore[method-assign]


def deviation(case: Saturated) -> Deviation:
    """Return how far the queues of a case were from their shares at worst."""
    world = case.world()
    until = case.lasts * case.mean
    run = _Metered(world, read_jobs(list(case.jobs()), world), Options(until=until))
    run.run()
    worst, moment = 0.0, 0.0
    for leaf, due in case.due().items():
        off = [use.get(leaf, 0.0) - due for use in run.uses]
        total = [0.0]
        for before, now, use in zip(run.moments, run.moments[1:], off[1:], strict=False):
            total.append(total[-1] + use * (now - before))
            moment = max(moment, abs(use))
        for number, now in enumerate(run.moments):
            began = bisect_left(run.moments, now - WINDOW * case.mean)
            if now >= (WINDOW + 1) * case.mean:
                part = (total[number] - total[began]) / (now - run.moments[began])
                worst = max(worst, abs(part) / case.capacity)
    return Deviation(worst, moment)
