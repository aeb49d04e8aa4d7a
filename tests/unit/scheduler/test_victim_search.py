"""The search for who must be gone finds the shortest beginning, and leaves just that gone."""

from __future__ import annotations

import pytest
from tests.support.running import Running

from lockstep.scheduler.core.model.workload import Member, WorkloadKey
from lockstep.scheduler.core.placement.problem import problem_of
from lockstep.scheduler.core.placement.what_if import WhatIf
from lockstep.scheduler.core.preemption.victim_search import VictimSearch

RUNNING = ("v", "w", "x", "y")


def searched(
    nodes: int, candidates: list[list[str]], least: int = 0
) -> tuple[int | None, set[str]]:
    """Return how many candidates must go for a gang of so many nodes, and the gangs gone then."""
    world = Running.on("s/l: a:8 b:8 c:8 d:8")
    for name in RUNNING:
        world.run(f"{name}: 1x8")
    world.submit(f"g: {nodes}x8")
    cluster = world.cluster
    workload = cluster.workloads[WorkloadKey("Gang", "default", "g")]
    problem, state = problem_of(cluster, workload), WhatIf(cluster)
    steps = [[member(world, name) for name in names] for names in candidates]
    found = VictimSearch(state, steps, lambda: state.place(workload, problem)).shortest(least)
    return found and found[0], {one.name.removesuffix("-0") for one in state.gone.values()}


def member(world: Running, name: str) -> Member:
    return world.cluster.pods["default", f"{name}-0"]


@pytest.mark.parametrize("nodes", [1, 2, 3, 4])
def test_as_many_go_as_are_needed(nodes):
    assert searched(nodes, [[name] for name in RUNNING]) == (nodes, set(RUNNING[:nodes]))


@pytest.mark.parametrize(
    ("nodes", "candidates", "least", "expected"),
    [
        pytest.param(1, [["v", "w"], ["x"]], 0, (1, {"v", "w"}), id="a gang goes as a whole"),
        pytest.param(2, [["v"], ["v", "w"], ["x"]], 0, (2, {"v", "w"}), id="a part, then the rest"),
        pytest.param(1, [["v"], ["w"], ["x"]], 2, (2, {"v", "w"}), id="not below the least"),
        pytest.param(4, [["v"], ["w"], ["x"]], 0, (None, {"v", "w", "x"}), id="all do not do"),
        pytest.param(1, [], 0, (None, set()), id="no candidates"),
    ],
)
def test_candidates_go_in_order(nodes, candidates, least, expected):
    assert searched(nodes, candidates, least) == expected
