"""Groups that have wishes of their own: one domain for each of them, all of them at once."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.drawn import add, draw, draw_gang, places
from tests.support.examples import examples

from lockstep.scheduler.core.cycle.decider import Decider
from lockstep.scheduler.core.explain.diagnosis import explain
from lockstep.scheduler.core.model.workload import WorkloadKey
from lockstep.scheduler.core.state.cluster import Cluster

KEY = WorkloadKey("Gang", "default", "g")
APPROXIMATE = "too many combinations"


def leaves(*sizes: int) -> str:
    """Draw leaves of so many nodes of 8 GPUs each."""
    lines = []
    for leaf, size in enumerate(sizes):
        nodes = " ".join(f"n{leaf}{i}:8" for i in range(size))
        lines.append(f"s/l{leaf}: {nodes}")
    return "\n".join(lines)


def roles(*sizes: int) -> str:
    """Draw a gang of groups of so many nodes, each under one leaf."""
    return "g: " + " + ".join(f"r{i}={size}x8@leaf" for i, size in enumerate(sizes))


@settings(max_examples=examples(150), deadline=None)
@given(
    st.lists(st.integers(1, 3), min_size=1, max_size=5),
    st.lists(st.integers(1, 3), min_size=1, max_size=5),
)
def test_groups_find_leaves_exactly_when_brute_force_does(rooms: list[int], sizes: list[int]):
    cluster = draw(Cluster(), leaves(*rooms))
    add(cluster, draw_gang(roles(*sizes)))
    placed = bool(Decider(cluster).decide(0.0).placements)
    assert placed == any(
        all(
            sum(size for size, at in zip(sizes, chosen, strict=True) if at == leaf) <= room
            for leaf, room in enumerate(rooms)
        )
        for chosen in product(range(len(rooms)), repeat=len(sizes))
    )
    if not placed:
        assert APPROXIMATE not in explain(cluster, cluster.workloads[KEY]).message


def test_each_of_eight_roles_gets_a_leaf_of_its_own():
    cluster = draw(Cluster(), leaves(*[2] * 12))
    add(cluster, draw_gang(roles(*[2] * 8)))
    Decider(cluster).decide(0.0)
    at = places(cluster, "g-")
    assert len({at[f"g-r{i}-0"][:2] for i in range(8)}) == 8
    assert all(at[f"g-r{i}-0"][:2] == at[f"g-r{i}-1"][:2] for i in range(8))


def test_no_leaf_left_for_the_last_of_roles_is_certain():
    cluster = draw(Cluster(), leaves(*[2] * 10, 1, 3))
    add(cluster, draw_gang(roles(*[2] * 12)))
    assert not Decider(cluster).decide(0.0).placements
    message = explain(cluster, cluster.workloads[KEY]).message
    assert "room for 23 of 24 now" in message
    assert "even empty, the cluster would not hold it" in message
    assert APPROXIMATE not in message


def test_that_the_search_gave_up_is_said():
    # Roles of every size with leaves that are all a little too small: too many ways to be sure.
    cluster = draw(Cluster(), leaves(*[9] * 9))
    add(cluster, draw_gang(roles(*[5, 5, 4, 3] * 4, *[2] * 6, 1)))
    assert not Decider(cluster).decide(0.0).placements
    message = explain(cluster, cluster.workloads[KEY]).message
    assert APPROXIMATE in message
    assert "even empty" not in message


@pytest.mark.parametrize(
    ("sizes", "held"),
    [
        ((2,), "room for 1 of 2 now: 1 pod (8 GPUs) short"),
        ((1, 2), "room for 2 of 3 now: 1 pod (8 GPUs) short"),
    ],
)
def test_a_group_too_large_for_leaves_counts_where_most_fits(sizes, held):
    cluster = draw(Cluster(), leaves(1, 1))
    add(cluster, draw_gang(roles(*sizes)))
    Decider(cluster).decide(0.0)
    assert held in explain(cluster, cluster.workloads[KEY]).message
