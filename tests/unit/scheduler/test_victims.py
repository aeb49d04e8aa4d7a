"""Who goes for whom, against the rule written down once more: no one dearer, and no one more."""

from __future__ import annotations

from collections import Counter
from itertools import accumulate
from math import inf
from typing import NamedTuple

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.simulated_jobs import Json, job

from lockstep.api.core import PriorityClass
from lockstep.api.meta import ObjectMeta
from lockstep.nodes.simulated.spec import parse
from lockstep.scheduler.core.model.decisions import Eviction
from lockstep.sim.engine.options import Options
from lockstep.sim.engine.simulation import Simulation
from lockstep.sim.input.initial_cluster import initial_cluster_of
from lockstep.sim.input.jobs import read_jobs

PRIORITIES = {"low": 1, "middle": 2, "high": 3, "top": 9}


class Runs(NamedTuple):
    """A gang whose pods fill a node each."""

    gap: int
    """Seconds after the one before it."""
    priority: str
    least: int
    extra: int
    interval: int | None
    """Seconds within which it saves its work; None: it does not say."""

    def lost(self, since: int, now: int) -> float:
        """Return the seconds of work that it loses."""
        return min(now - since, inf if self.interval is None else self.interval)

    def job(self, name: str, at: int) -> Json:
        stated = {"checkpoint": {"interval": f"{self.interval}s"}} if self.interval else {}
        size = f"{self.least}..{self.least + self.extra}x8"
        return job(name, size, at=at, priorityClassName=self.priority, **stated)


Cost = tuple[bool, int, float]
RUNS = st.builds(
    Runs,
    gap=st.integers(1, 2000),
    priority=st.sampled_from(["low", "middle", "high"]),
    least=st.integers(1, 3),
    extra=st.integers(0, 2),
    interval=st.none() | st.integers(1, 2000),
)


class Watched(Simulation):
    """Notes the first eviction: who goes may in its turn take the place of others."""

    first: Eviction | None = None

    def make_way(self, eviction: Eviction) -> None:
        self.first = self.first or eviction
        super().make_way(eviction)


def rule(there: list[tuple[str, Runs, int]], now: int, nodes: int) -> dict[str, int]:
    """Return how many members each gang loses for so many nodes; all nodes are in use."""
    chunks: list[tuple[Cost, str, int]] = []
    for name, one, at in there:
        priority = PRIORITIES[one.priority]
        chunks += [((False, priority, 0), name, 1)] * one.extra
        chunks.append(((True, priority, one.lost(at, now) * one.least), name, one.least))
    costs = [cost for cost, _, _ in chunks if cost[0]]
    assume(len(set(costs)) == len(costs))
    chunks.sort()
    given = list(accumulate(size for _, _, size in chunks))
    chunks = chunks[: next(number for number, there in enumerate(given, 1) if there >= nodes)]
    over = sum(size for _, _, size in chunks) - nodes
    gone: dict[str, int] = {}
    whole = set()
    for (all_of_it, *_), name, size in reversed(chunks):
        if size <= over and name not in whole:
            over -= size
            continue
        gone[name] = gone.get(name, 0) + size
        if all_of_it:
            whole.add(name)
    return gone


@settings(max_examples=examples(25), deadline=None)
@given(runs=st.lists(RUNS, min_size=1, max_size=5), data=st.data())
def test_the_cheapest_go_and_nobody_for_room_that_others_leave(
    runs: list[Runs], data: st.DataObject
) -> None:
    began = list(accumulate(one.gap for one in runs))
    there = [(f"g{n}", one, at) for n, (one, at) in enumerate(zip(runs, began, strict=True))]
    nodes = sum(one.least + one.extra for one in runs)
    size, now = data.draw(st.integers(1, nodes)), began[-1] + data.draw(st.integers(1, 3000))
    world = initial_cluster_of(parse(f"{nodes}x8"))
    world.priority_classes = [
        PriorityClass(metadata=ObjectMeta(name=name), value=value)
        for name, value in PRIORITIES.items()
    ]
    boss = job("boss", f"{size}x8", at=now, priorityClassName="top")
    jobs = [one.job(name, at) for name, one, at in there]
    simulation = Watched(world, read_jobs([*jobs, boss], world), Options(until=float(now)))
    simulation.run()
    assert simulation.first is not None
    gone = Counter(member.workload.name for member in simulation.first.victims)
    assert gone_of(gone, there) == gone_of(rule(there, now, size), there)


def gone_of(gone: dict[str, int], there: list[tuple[str, Runs, int]]) -> object:
    """Return who goes whole, and how many of each priority go whose gangs go on."""
    whole = {name: gone[name] for name, one, _ in there if gone.get(name, 0) > one.extra}
    extras = Counter[str]()
    for name, one, _ in there:
        if name not in whole:
            extras[one.priority] += gone.get(name, 0)
    return whole, extras
