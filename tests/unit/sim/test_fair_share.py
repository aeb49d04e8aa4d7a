"""Under saturation each queue has its fair share, whatever the run times of its jobs."""

from __future__ import annotations

import random
from dataclasses import dataclass
from math import ceil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.simulated_jobs import Json, job, simulate

from lockstep.api.queue import Queue
from lockstep.nodes.simulated.spec import parse
from lockstep.sim.engine.options import Options
from lockstep.sim.input.initial_cluster import InitialCluster, initial_cluster_of, view

GPU = "nvidia.com/gpu"
FROM, UNTIL = 150.0, 550.0
"""The seconds over which use is averaged; at first all queues start from nothing."""
Part = tuple[str | None, int, int]
Tree = dict[str, Part]
"""By queue its parent, its weight and the GPUs that it is guaranteed."""


@dataclass(frozen=True)
class Case:
    """A tree of queues over nodes, with more jobs in each leaf than there is room for."""

    tree: Tree
    nodes: str
    jobs: str = "1x1"
    """The size of all jobs."""
    runs: tuple[int, int] = (20, 80)
    """The shortest and the longest run time, in seconds."""
    seed: int = 0
    limit: int = 0
    """The GPUs that a queue around all of them may use; 0 for no such queue."""

    @property
    def leaves(self) -> list[str]:
        parents = {parent for parent, _, _ in self.tree.values()}
        return [name for name in self.tree if name not in parents]

    @property
    def size(self) -> int:
        pods, _, gpus = self.jobs.partition("x")
        return int(pods) * int(gpus)

    def fair(self, capacity: float) -> dict[str, float]:
        """Return by leaf what is due to it: its guaranteed amount, then what is left by weight."""
        found: dict[str, float] = {}
        pending: list[tuple[str | None, float]] = [(None, capacity)]
        while pending:
            above, amount = pending.pop()
            parts = {name: one for name, one in self.tree.items() if one[0] == above}
            left = amount - sum(guaranteed for _, _, guaranteed in parts.values())
            weights = sum(weight for _, weight, _ in parts.values())
            for name, (_, weight, guaranteed) in parts.items():
                due = guaranteed + left * (weight / weights if weights else 1 / len(parts))
                pending.append((name, due))
                found[name] = due
        return {name: found[name] for name in self.leaves}

    def world(self) -> InitialCluster:
        world = initial_cluster_of(parse(self.nodes))
        around = "around" if self.limit else None
        specs: dict[str, Json] = {"around": {"limit": {GPU: self.limit}}} if around else {}
        for name, (parent, weight, guaranteed) in self.tree.items():
            above = parent or around
            specs[name] = {"weight": weight, "guaranteed": {GPU: guaranteed}, "parent": above}
        for name, spec in specs.items():
            world.queues.append(view({"metadata": {"name": name}, "spec": spec}, Queue))
        return world

    def works(self, capacity: int) -> list[Json]:
        """Return the jobs: a stock in each leaf, and then as many again as it can run."""
        dice = random.Random(self.seed)  # noqa: S311  seeded run times
        mean, works = sum(self.runs) / 2, []
        for leaf, due in self.fair(capacity).items():
            stock = 4 + 2 * ceil(due / self.size)
            again = mean * self.size / (1.3 * due + self.size)
            for number in range(stock + int(UNTIL / again)):
                name, runs = f"{leaf.lower()}-{number:03}", dice.randint(*self.runs)
                at = max(0, number - stock) * again
                works.append((at, job(name, self.jobs, at=at, runs=runs, queue=leaf)))
        return [one for _, one in sorted(works, key=lambda work: work[0])]


def held_evenly(case: Case) -> None:
    nodes, _, gpus = case.nodes.partition("x")
    capacity = case.limit or int(nodes) * int(gpus)
    world, works = case.world(), case.works(capacity)
    early, late = (
        simulate(world, *works, options=Options(until=until)).queue_use for until in (FROM, UNTIL)
    )
    use = {
        leaf: (late.get(leaf, 0.0) - early.get(leaf, 0.0)) / (UNTIL - FROM) for leaf in case.leaves
    }
    due = case.fair(capacity)
    off = {leaf: abs(use[leaf] - due[leaf]) for leaf in case.leaves}
    assert max(off.values()) <= case.size, f"{use} in place of {due}"
    assert sum(use.values()) > capacity - case.size


def flat(*weights: int) -> Tree:
    return {name: (None, weight, 0) for name, weight in zip("ABCD", weights, strict=False)}


CASES = [
    pytest.param(Case(flat(1, 1), "1x4"), id="equal weights on one node"),
    pytest.param(Case(flat(1, 3), "1x8"), id="weights 1 and 3"),
    pytest.param(Case(flat(5, 1), "1x8"), id="weights 5 and 1"),
    pytest.param(Case(flat(1, 3), "8x8", "1x8"), id="whole nodes"),
    pytest.param(Case(flat(1, 1, 2), "4x8", "2x8"), id="gangs of two whole nodes"),
    pytest.param(Case(flat(0, 1), "1x8"), id="weight 0 has what the other leaves"),
    pytest.param(Case(flat(0, 0), "1x8"), id="weights of 0 alone are equal"),
    pytest.param(
        Case({"A": (None, 0, 4), "B": (None, 0, 0)}, "1x8"),
        id="weights of 0 alone share beyond what is guaranteed",
    ),
    pytest.param(
        Case({"A": (None, 1, 4), "B": (None, 1, 0)}, "1x8"), id="a guaranteed amount comes first"
    ),
    pytest.param(
        Case(
            {
                "A": (None, 1, 0),
                "B": (None, 3, 0),
                "A1": ("A", 1, 0),
                "A2": ("A", 3, 0),
                "B1": ("B", 0, 0),
                "B2": ("B", 1, 0),
            },
            "2x8",
        ),
        id="a tree with weights 0, 1 and 3",
    ),
    pytest.param(Case(flat(1, 1), "4x4", limit=4), id="equal weights under a shared limit"),
    pytest.param(Case(flat(1, 3), "2x8", limit=8), id="weights 1 and 3 under a shared limit"),
    pytest.param(Case(flat(5, 1, 2), "2x8", limit=8), id="three weights under a shared limit"),
    pytest.param(Case(flat(0, 1), "2x8", limit=8), id="weight 0 under a shared limit"),
    pytest.param(
        Case(flat(1, 1, 2), "8x8", "2x8", limit=32), id="gangs of whole nodes under a shared limit"
    ),
]


@pytest.mark.parametrize("case", CASES)
def test_saturated_queues_hold_their_fair_share(case: Case):
    held_evenly(case)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    nodes, jobs, capacity = draw(
        st.sampled_from(
            [("1x8", "1x1", 8), ("2x8", "1x2", 16), ("4x8", "1x8", 32), ("6x8", "2x8", 48)]
        )
    )
    tree: Tree = {}
    size = int(jobs[0]) * int(jobs[2])

    def part(name: str, parent: str | None, most: int) -> int:
        weight = draw(st.sampled_from([0, 1, 2, 3, 5]))
        guaranteed = size * draw(st.integers(0, max(0, most // size // 2)))
        tree[name] = parent, weight, guaranteed
        return guaranteed

    for top in "AB":
        capacity -= (own := part(top, None, capacity))
        if draw(st.booleans()):
            for leaf in "12":
                own -= part(f"{top}{leaf}", top, own)
    shortest = draw(st.integers(5, 60))
    runs = shortest, shortest + draw(st.sampled_from([1, 10, 60]))
    return Case(tree, nodes, jobs, runs, draw(st.integers(0, 1000)))


@settings(max_examples=examples(2), deadline=None, derandomize=True)
@given(cases())
def test_drawn_saturated_queues_hold_their_fair_share(case: Case):
    held_evenly(case)


@pytest.mark.soak
@pytest.mark.timeout(1800)
@settings(max_examples=examples(60), deadline=None)
@given(cases())
def test_many_saturated_queues_hold_their_fair_share(case: Case):
    held_evenly(case)
