"""Which node is emptied so that it can go back, and where its gangs have room then."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.support.drawn import pod
from tests.support.pooled import pool
from tests.support.running import Running

from lockstep.api.core import PodDisruptionBudget
from lockstep.api.timestamp import show
from lockstep.api.wire import convert
from lockstep.pools.core.emptying import Emptying, emptying
from lockstep.scheduler.core.model.workload import WorkloadKey

LATER = 1_001_000.0
MOVES = {"defragmentation": {"coolDown": "10m"}}
NODES = "s/l: p-0:8 p-1:8 p-2:8 old:8"
There = dict[str, tuple[str, int | None]]
"""By drawing of a gang: its nodes, and how many seconds ago it saved its work, None for never."""


def standing(there: There, policy: dict[str, Any] | None = None, *, owned: bool = True) -> Running:
    world = Running.on(NODES, {"default": MOVES if policy is None else policy})
    for text, (nodes, saved) in there.items():
        notes = {} if saved is None else {"lockstep.dev/checkpoint": show(LATER - saved)}
        name = world.submit(text, annotations=notes, owned=owned)
        world.stand(name, nodes.split())
    world.settle()
    world.now = LATER
    return world


def emptied(world: Running, drawing: str = "p: 8x8", **more: Any) -> Emptying | None:
    nodes = {0: "p-0", 1: "p-1", 2: "p-2"}
    there = replace(pool(drawing, **more), names=nodes, ready=frozenset(nodes))
    cluster = world.cluster
    return emptying(
        cluster, [there], LATER, needed=(), pods=lambda n: {m.key for m in cluster.on_node(n)}
    )


def told(found: Emptying | None) -> tuple[str, dict[str, str]] | None:
    if found is None:
        return None
    return found.node, {key.name: " ".join(where) for key, where in found.moves.items()}


CASES: dict[str, tuple[There, tuple[str, dict[str, str]] | None]] = {
    # name: what runs, the node that is emptied and where its gangs go
    "the gang of least price moves": (
        {"x: 1x4": ("p-0", 90), "y: 1x4": ("p-1", 10), "z: 1x8": ("old", 10)},
        ("p-1", {"y": "p-0"}),
    ),
    "both gangs of a node move": (
        {"x: 1x2": ("p-0", 10), "y: 1x2": ("p-0", 10), "z: 1x4": ("p-1", 10)},
        ("p-0", {"x": "p-1", "y": "p-1"}),
    ),
    "none moves to an idle node of a pool": ({"x: 1x4": ("p-0", 10), "z: 1x8": ("old", 9)}, None),
    "a node of no pool takes them, idle or not": ({"x: 1x4": ("p-0", 10)}, ("p-0", {"x": "old"})),
    "a full gang stays where nothing has room": (
        {"x: 1x8": ("p-0", 10), "y: 1x4": ("p-1", 10), "z: 1x8": ("old", 10)},
        None,
    ),
    "a gang that never saves stays": (
        {"x: 1x4": ("p-0", None), "z: 1x8": ("old", None)},
        None,
    ),
    "work that costs more than the node saves is kept": (
        {"x: 4x2": ("p-0 p-0 p-0 p-0", 900)},
        None,
    ),
    "a gang of two nodes moves as a whole": (
        {"x: 2x2": ("p-0 p-1", 10), "z: 1x4": ("p-1", 5), "o: 1x8": ("old", 9)},
        ("p-0", {"x": "p-1"}),
    ),
}


@pytest.mark.parametrize(("there", "expected"), CASES.values(), ids=CASES)
def test_emptying(there: There, expected: tuple[str, dict[str, str]] | None) -> None:
    assert told(emptied(standing(there))) == expected


HALF: There = {"x: 1x4": ("p-0", 10), "y: 1x4": ("p-1", 10), "z: 1x8": ("old", 10)}


@pytest.mark.parametrize(
    ("rule", "policy", "drawing", "more", "moves"),
    [
        ("with a policy", MOVES, "p: 8x8", {}, True),
        ("never without a policy", {}, "p: 8x8", {}, False),
        ("not below the minimum", MOVES, "p: 3..8x8", {}, False),
        (
            "not above the policy's price",
            {"defragmentation": {"coolDown": "10m", "maxPrice": "5m"}},
            "p: 8x8",
            {},
            False,
        ),
        (
            "no gang that came a moment ago",
            {"defragmentation": {"coolDown": "1h"}},
            "p: 8x8",
            {},
            False,
        ),
        (
            "not while nodes are on their way",
            MOVES,
            "p: 8x8",
            {"status": {"requests": [{"id": "r", "slots": [5], "at": "1970-01-12T13:46:40Z"}]}},
            False,
        ),
    ],
)
def test_a_node_is_emptied(
    rule: str, policy: dict[str, Any], drawing: str, more: dict[str, Any], moves: bool
) -> None:
    found = emptied(standing(HALF, policy), drawing, **more)
    assert (found is not None) == moves, rule


def test_nothing_moves_while_a_gang_waits_for_room() -> None:
    world = standing(HALF)
    world.submit("w: 3x8")
    assert emptied(world) is None


def test_a_gang_waiting_for_quota_keeps_nothing_from_moving() -> None:
    world = standing(HALF)
    name = world.submit("w: 3x8")
    world.show(name, reason="OverQuota")
    assert emptied(world) is not None


def test_pods_that_have_no_gang_keep_their_node() -> None:
    world = standing({"x: 1x4": ("p-0", 10)})
    world.cluster.set_pod(pod("alone", gpus=1, on="p-0", phase="Running"))
    assert emptied(world) is None


def test_pods_that_nobody_makes_again_stay() -> None:
    assert emptied(standing(HALF, owned=False)) is None


def test_a_budget_keeps_a_gang_where_it_is() -> None:
    world = standing(HALF)
    budget = {
        "metadata": {"name": "all", "namespace": "default"},
        "spec": {"selector": {}},
        "status": {"disruptionsAllowed": 0, "observedGeneration": 0},
    }
    world.cluster.budgets.set(convert(budget, PodDisruptionBudget))
    assert emptied(world) is None


def test_the_reason_is_in_words() -> None:
    moves = {WorkloadKey("Gang", "a", "tune"): ("p-1", "p-2")}
    assert Emptying("p", "p-0", moves, 1800.0).in_words() == (
        "node p-0 is emptied to be given back: a/tune to p-1, p-2 "
        "(0.5 GPU hours of work are done again)"
    )
