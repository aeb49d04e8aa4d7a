"""Gangs whose members take shares of different sizes: placed exactly when there is a way."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.drawn import gang, node, pod
from tests.support.examples import examples

from lockstep.scheduler.core.cycle.decider import Decider
from lockstep.scheduler.core.state.cluster import Cluster
from lockstep.scheduler.core.util.bitmask import indices_of

MEMORY = 1000
Ask = tuple[int, int, int]
"""Cards, hundredths of compute and MiB of each; no hundredths and no MiB: whole cards."""


def member(name: str, ask: Ask, **more: Any) -> Any:
    cards, compute, memory = ask
    if not compute and not memory:
        return pod(name, gpus=cards, **more)
    requests = {
        "lockstep.dev/gpu-cards": cards,
        "lockstep.dev/gpu-compute": compute,
        "lockstep.dev/gpu-memory": memory,
    }
    return pod(name, requests=requests, **more)


def cluster_of(nodes: list[list[int]], asks: list[Ask], strategy: str | None) -> Cluster:
    """Nodes by the hundredths in use of each card, and a gang of one member for each ask."""
    cluster = Cluster()
    for i, used in enumerate(nodes):
        devices = [{"index": card, "memory": MEMORY} for card in range(len(used))]
        cluster.set_node(node(f"n{i}", gpus=len(used), devices=devices))
        for card, compute in enumerate(used):
            if compute:
                held = {"on": f"n{i}", "held": str(card), "phase": "Running"}
                cluster.set_pod(member(f"there-{i}-{card}", (1, compute, 0), **held))
    cluster.set_gang(gang("g", minMember=len(asks), strategy=strategy))
    for i, ask in enumerate(asks):
        cluster.set_pod(member(f"g-{i}", ask, gang="g"))
    return cluster


def way_exists(nodes: list[list[int]], asks: list[Ask]) -> bool:
    """Try every way of giving cards to members."""
    free = [[(100 - used, MEMORY, used == 0) for used in cards] for cards in nodes]
    return _seat(free, asks)


def _seat(free: list[list[tuple[int, int, bool]]], asks: list[Ask]) -> bool:
    if not asks:
        return True
    (count, compute, memory), later = asks[0], asks[1:]
    for cards in free:
        for chosen in combinations(range(len(cards)), count):
            before = [cards[card] for card in chosen]
            if compute or memory:
                fits = all(c >= compute and m >= memory for c, m, _ in before)
                after = [(c - compute, m - memory, False) for c, m, _ in before]
            else:
                fits = all(untouched for _, _, untouched in before)
                after = [(0, 0, False)] * count
            if not fits:
                continue
            for card, state in zip(chosen, after, strict=True):
                cards[card] = state
            found = _seat(free, later)
            for card, state in zip(chosen, before, strict=True):
                cards[card] = state
            if found:
                return True
    return False


def check(cluster: Cluster, nodes: list[list[int]], asks: list[Ask]) -> None:
    """No card holds more than it has, and nobody shares a card that is held whole."""
    compute = {(f"n{i}", c): used for i, cards in enumerate(nodes) for c, used in enumerate(cards)}
    memory = dict.fromkeys(compute, 0)
    for i, (count, hundredths, mib) in enumerate(asks):
        placed = cluster.pods["default", f"g-{i}"]
        cards = indices_of(placed.gpus)
        assert len(cards) == count
        for card in cards:
            compute[placed.node, card] += hundredths or (0 if mib else 100)
            memory[placed.node, card] += mib or (0 if hundredths else MEMORY)
    assert max(compute.values()) <= 100
    assert max(memory.values()) <= MEMORY


ONE = st.tuples(st.just(1), st.sampled_from([30, 40, 50, 60, 70]), st.sampled_from([0, 300, 500]))
SEVERAL = st.tuples(st.just(2), st.sampled_from([20, 50, 60]), st.sampled_from([0, 500]))
WHOLE = st.tuples(st.integers(1, 2), st.just(0), st.just(0))
NODES = st.lists(
    st.lists(st.sampled_from([0, 0, 30, 50, 60]), min_size=1, max_size=3), min_size=1, max_size=2
)
ASKS = st.lists(st.one_of(ONE, ONE, SEVERAL, WHOLE), min_size=1, max_size=5)


@settings(max_examples=examples(400), deadline=None)
@given(NODES, ASKS, st.sampled_from([None, "Binpack", "Spread"]))
def test_mixed_shares_are_placed_exactly_when_brute_force_places_them(
    nodes: list[list[int]], asks: list[Ask], strategy: str | None
) -> None:
    cluster = cluster_of(nodes, asks, strategy)
    found = Decider(cluster).decide(0.0)
    assert not found.errors
    assert bool(found.placements) == way_exists(nodes, asks)
    if found.placements:
        check(cluster, nodes, asks)


CASES = [
    # what is shown, hundredths in use by card and node, what the members ask, whether they fit
    ("three thirds beside two thirds", [[0, 0]], [(1, 60, 0), (1, 60, 0), (1, 40, 0)], True),
    ("only in one way", [[0, 0]], [(1, 50, 0), (1, 50, 0), (1, 40, 0), (1, 30, 0)], True),
    ("largest first would not do", [[0, 0, 0]], [*[(1, 30, 0)] * 6, *[(1, 40, 0)] * 3], True),
    ("compute and memory cross", [[0, 0]], [(1, 70, 200), (1, 30, 800), (1, 60, 500)], True),
    ("sums fit, cards do not", [[0, 0]], [(1, 60, 0), (1, 60, 0), (1, 60, 0)], False),
    ("two pods on two cards each of three", [[0, 50, 50]], [(2, 50, 0), (2, 50, 0)], True),
    (
        "a whole one and shares of the others",
        [[0, 0, 0]],
        [(1, 0, 0), (2, 50, 0), (2, 50, 0)],
        True,
    ),
    ("two whole leave no two for shares", [[0, 0, 0]], [(2, 0, 0), (2, 50, 0)], False),
]


@pytest.mark.parametrize(
    ("nodes", "asks", "fits"), [c[1:] for c in CASES], ids=[c[0] for c in CASES]
)
def test_what_fits_together(nodes: list[list[int]], asks: list[Ask], fits: bool) -> None:
    cluster = cluster_of(nodes, asks, None)
    found = Decider(cluster).decide(0.0)
    assert not found.errors
    assert bool(found.placements) == fits
    if fits:
        check(cluster, nodes, asks)


def test_shares_of_a_gang_are_packed_on_few_cards() -> None:
    cluster = cluster_of([[0, 0, 0, 0]], [(1, 70, 0), (1, 30, 0), (1, 30, 0), (1, 70, 0)], None)
    Decider(cluster).decide(0.0)
    used = {indices_of(cluster.pods["default", f"g-{i}"].gpus) for i in range(4)}
    assert len(used) == 2
