"""What kinds of GPUs the nodes have, kept up as nodes come, change and go."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.drawn import node

from lockstep.api.core import Node
from lockstep.api.names import GPU_MODEL_LABEL
from lockstep.scheduler.core.quota.account import UNKNOWN_CARD, CardKind
from lockstep.scheduler.core.state.cluster import Cluster


def with_gpus(name: str, model: str, memory: int) -> Node:
    devices = [{"index": n, "memory": memory} for n in range(8)]
    return node(name, gpus=8, labels={GPU_MODEL_LABEL: model}, devices=devices)


def told(cluster: Cluster) -> dict[str, CardKind]:
    """Return by node what kind of GPUs it is said to have."""
    cards, own = cluster.offer.cards()
    return {name: cards[own[row]] for name, row in cluster.table.rows.items()}


names = st.sampled_from([f"n{number}" for number in range(70)])
events = st.one_of(
    st.tuples(
        names, st.builds(CardKind, st.sampled_from(["A", "B", ""]), st.sampled_from([80, 40]))
    ),
    st.tuples(names, st.none()),
    st.none(),
)


@settings(deadline=None)
@given(st.lists(events, max_size=40))
def test_every_look_tells_what_the_nodes_have_now(
    happened: list[tuple[str, CardKind | None] | None],
):
    cluster, there = Cluster(), dict[str, CardKind]()
    for event in (*happened, None):
        match event:
            case None:
                assert told(cluster) == there
            case name, None:
                there.pop(name, None)
                cluster.remove_node(name)
            case name, card:
                there[name] = card
                cluster.set_node(with_gpus(name, *card))


def test_a_place_no_gang_has_any_more_has_no_kind():
    cluster = Cluster()
    cluster.set_node(with_gpus("n", "A", 80))
    row = cluster.table.rows["n"]
    assert told(cluster) == {"n": CardKind("A", 80)}
    cluster.remove_node("n")
    cards, own = cluster.offer.cards()
    assert cards[own[row]] == UNKNOWN_CARD


def test_the_table_may_grow_between_two_looks():
    cluster = Cluster()
    for number in range(3 * cluster.table.capacity):
        cluster.set_node(with_gpus(f"n{number}", "AB"[number % 2], 80))
        if number % 50 == 0:
            assert told(cluster)[f"n{number}"] == CardKind("A", 80)
    assert list(told(cluster).values()).count(CardKind("B", 80)) == len(cluster.table) // 2


def test_kinds_that_nobody_has_any_more_are_forgotten():
    cluster = Cluster()
    for memory in range(1, 40):
        cluster.set_node(with_gpus("n", "A", memory))
        assert cluster.offer.cards()[0] == [UNKNOWN_CARD, CardKind("A", memory)]
