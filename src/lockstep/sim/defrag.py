"""Moving jobs so that a waiting one fits: which, at what price, and where everybody would stand.

A plan is tried out whole before it is told: on a cluster without the jobs that move, the waiting
one is placed first and each of them after it, by the scheduler's own decisions. It counts only
when all of them start at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lockstep.sim.engine import Options, Simulation
from lockstep.sim.record import Stay
from lockstep.sim.workload import Workload
from lockstep.sim.world import World


@dataclass(frozen=True, slots=True)
class Mover:
    """A running job that may be moved, and what moving it throws away."""

    work: Workload
    price: float
    """GPU-seconds of work since its last checkpoint."""


@dataclass(frozen=True, slots=True)
class Move:
    """A job that moves: from where, to where."""

    job: str
    price: float
    before: tuple[str, ...]
    """The nodes of its pods now."""
    after: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """What lets a job start; carried out, every pod comes to stand as told."""

    job: str
    nodes: dict[str, str]
    """The node of each of its pods."""
    moves: tuple[Move, ...]

    @property
    def price(self) -> float:
        """Return the GPU-seconds of work that are thrown away."""
        return sum(move.price for move in self.moves)


def defragment(
    world: World, works: Sequence[Workload], wanted: Workload, movers: Sequence[Mover]
) -> Plan | None:
    """Return the plan that lets *wanted* start at once by moving some of *movers*.

    The cheapest are moved first: the shortest beginning of the order of prices that suffices is
    found by halving, and of it, from the dearest on, whoever can stay where he is does. None when
    moving all of them would not do, or nobody has to move.
    """
    ordered = sorted(movers, key=lambda mover: (mover.price, mover.work.gpus, mover.work.key))
    ground = _Ground(world, works, wanted)
    if ground.stand([]) is not None or ground.stand(ordered) is None:
        return None
    low, high = 1, len(ordered)
    while low < high:
        middle = (low + high) // 2
        if ground.stand(ordered[:middle]) is None:
            low = middle + 1
        else:
            high = middle
    chosen = ordered[:high]
    for mover in reversed(chosen[:-1]):
        fewer = [other for other in chosen if other is not mover]
        if ground.stand(fewer) is not None:
            chosen = fewer
    stays = ground.stand(chosen)
    return None if stays is None else ground.plan(chosen, stays)


class _Ground:
    """The cluster on which sets of movers are tried."""

    def __init__(self, world: World, works: Sequence[Workload], wanted: Workload) -> None:
        self._world = world
        self._wanted = wanted
        self._works = [work for work in works if work.key != wanted.key]
        self._standing = {w.key: world.standing(w.key) for w in self._works}

    def stand(self, moving: Sequence[Mover]) -> list[Stay] | None:
        """Return where all stand at once when these move; None when somebody finds no place."""
        keys = {mover.work.key for mover in moving}
        gone = {
            (pod.metadata.namespace, pod.metadata.name)
            for key in keys
            for pod in self._standing[key]
        }
        world = replace(
            self._world, pods={k: pod for k, pod in self._world.pods.items() if k not in gone}
        )
        # Whoever waits besides is left out: what is freed is for the one that it was freed for.
        stayed = [w for w in self._works if w.key not in keys and self._standing[w.key]]
        largest = sorted(moving, key=lambda mover: (-mover.work.gpus, mover.work.key))
        simulation = Simulation(world, [*stayed, self._wanted], Options(until=0.0))
        result = simulation.run(then=[mover.work for mover in largest])
        placed = {life.work.key for life in result.lives if life.started == 0}
        everybody = {self._wanted.key, *keys}
        return result.stays if everybody <= placed and not result.evictions else None

    def plan(self, moving: Sequence[Mover], stays: Sequence[Stay]) -> Plan:
        """Return the plan in words' reach: pods, nodes, prices."""
        after: dict[str, list[str]] = {}
        for stay in stays:
            after.setdefault(stay.job, []).append(stay.node)
        moves = tuple(
            Move(
                mover.work.name,
                mover.price,
                tuple(sorted(p.spec.node_name for p in self._standing[mover.work.key])),
                tuple(sorted(after[mover.work.name])),
            )
            for mover in moving
        )
        nodes = {stay.pod: stay.node for stay in stays if stay.job == self._wanted.name}
        return Plan(self._wanted.name, nodes, moves)
