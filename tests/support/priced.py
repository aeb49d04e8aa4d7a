"""Preemptions carried out to their end, with the first choice of victims forced or free.

The referee of plans: each choice of victims that makes room is forced once, and the scheduler
itself plays what follows.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from random import Random
from typing import Any, NamedTuple
from unittest.mock import patch

from tests.support.running import PRIORITIES, Running

from lockstep.api.core import PodDisruptionBudget
from lockstep.api.wire import convert
from lockstep.scheduler.core.model.decisions import Eviction
from lockstep.scheduler.core.preemption.planner import PreemptionPlanner

BOSS = "boss"


class There(NamedTuple):
    """A gang that stands on nodes, a pod on each, or that waits where it names none."""

    nodes: tuple[int, ...]
    pods: int
    gpus: int
    priority: str
    protected: bool
    gap: int
    """Seconds between the one before it and its start."""


class Outcome(NamedTuple):
    """What a preemption has cost when no gang moves any more."""

    broken: int
    left_out: float
    lost: float
    gangs: int


@dataclass(frozen=True)
class Scene:
    """Nodes by their GPUs, what stands and waits there, and what comes: pods x GPUs."""

    nodes: tuple[int, ...]
    there: tuple[There, ...]
    unavailable: int
    """Protected pods that may be missing."""
    pods: int
    gpus: int

    def outcome(self, forced: frozenset[str] | None = None) -> Outcome | None:
        """Return what it costs, with just these gangs as the first victims where they are given.

        None where they do not make room, or none need to go.
        """
        world = _Watched.of(self)
        with patch.object(PreemptionPlanner, "draft", _forcing(forced)):
            world.submit(f"{BOSS}: {self.pods}x{self.gpus}", priority="top")
            world.settle()
        return world.outcome() if BOSS in world.there() and world.evicted else None

    def best(self) -> Outcome | None:
        """Return the least that any first choice of victims costs; None where none makes room.

        A choice with a victim that need not go is none.
        """
        names = sorted(_Watched.of(self).before)
        fitting: list[frozenset[str]] = []
        outcomes = []
        for size in range(1, len(names) + 1):
            for chosen in map(frozenset, combinations(names, size)):
                if any(less <= chosen for less in fitting):
                    continue
                outcome = self.outcome(chosen)
                if outcome is not None:
                    fitting.append(chosen)
                    outcomes.append(outcome)
        return min(outcomes, default=None)


def _forcing(forced: frozenset[str] | None) -> Any:
    """Return a way to plan by which just these gangs go for what comes."""
    free = PreemptionPlanner.draft

    def draft(self: Any, state: Any, effort: Any, rows: Any = None, depth: int = 0) -> Any:
        if forced is None or depth or self._workload.key.name != BOSS:
            return free(self, state, effort, rows, depth)
        chunks = [chunk for chunk in self._chunks() if chunk.key.name in forced]
        present = state.mark()
        state.vacate([member for chunk in chunks for member in chunk.members])
        placement = state.place(self._workload, self._problem, rows)
        state.rollback(present)
        if placement is None or {chunk.key.name for chunk in chunks} != forced:
            return None
        return self._judged(placement, chunks)

    return draft


class _Watched(Running):
    """Notes what evictions cost."""

    @classmethod
    def of(cls, scene: Scene) -> _Watched:
        world = cls.on("s/l: " + " ".join(f"n{n}:{size}" for n, size in enumerate(scene.nodes)))
        assert isinstance(world, _Watched)
        names = [f"g{number}" for number, one in enumerate(scene.there) if one.protected]
        expression = {"key": "lockstep.dev/gang", "operator": "In", "values": names or ["none"]}
        budget = {
            "metadata": {"name": "keep", "namespace": "default"},
            "spec": {
                "selector": {"matchExpressions": [expression]},
                "maxUnavailable": scene.unavailable,
            },
        }
        world.cluster.budgets.set(convert(budget, PodDisruptionBudget))
        world.cluster.budgets.follow(world.cluster.pods)
        for number, one in enumerate(scene.there):
            world.now += one.gap
            world.submit(f"g{number}: {one.pods}x{one.gpus}", priority=one.priority)
            if one.nodes:
                world.stand(f"g{number}", [f"n{node}" for node in one.nodes])
        world.settle()
        world.before = world.there()
        world.evicted.clear()
        world.broken.clear()
        world.lost = 0.0
        return world

    def __post_init__(self) -> None:
        super().__post_init__()
        self.before: set[str] = set()
        self.broken: set[str] = set()
        self.lost = 0.0

    def _evict(self, eviction: Eviction) -> None:
        nomination = self.cluster.nominations.get(eviction.workload)
        self.broken |= {one.name for one in nomination.violates} if nomination else set()
        for member in eviction.victims:
            self.lost += (self.now - (member.since or self.now)) * (member.shape.gpus or 1)
        super()._evict(eviction)

    def outcome(self) -> Outcome:
        """Return what was noted."""
        out = {name for name in self.before & set(self.evicted) if name not in self.there()}
        least = min(self._importance(name) for name in self.before)
        left_out = max([least, *map(self._importance, out)])
        return Outcome(len(self.broken), left_out, round(self.lost, 3), len(self.evicted))

    def _importance(self, name: str) -> int:
        return PRIORITIES.get(self.gangs[name].gang.spec.priority_class_name, 0)


def drawn(seed: int) -> Scene:
    """Return the scene of a seed: up to six gangs on up to four nodes."""
    chance = Random(seed)  # noqa: S311 - a test's chance, not a secret
    nodes = tuple(chance.choice((2, 4, 4)) for _ in range(chance.randint(2, 4)))
    free, there = list(nodes), []
    for _ in range(chance.randint(2, 6)):
        gpus, pods = chance.choice((1, 2, 2, 4)), chance.choice((1, 1, 2))
        open_to = [node for node, left in enumerate(free) if left >= gpus]
        on = tuple(chance.sample(open_to, pods)) if len(open_to) >= pods else ()
        for node in on:
            free[node] -= gpus
        priority = chance.choice(("low", "low", "", "high"))
        there.append(There(on, pods, gpus, priority, chance.random() < 0.4, chance.randint(1, 900)))
    return Scene(
        nodes, tuple(there), chance.randint(0, 2), chance.randint(1, 3), chance.choice((1, 2, 4))
    )
