"""Which nodes are got for the gangs that wait."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.drawn import add, draw, draw_gang, node, places, queue
from tests.support.pooled import bought, node_pool, pool

from lockstep.pools.core.growth import grow
from lockstep.pools.core.pool import seen
from lockstep.scheduler.core.state.cluster import Cluster

NOW = 1_000_000.0
CREATED = "2026-01-01T00:00:0{}Z"
EMPTY = "s/l: old:8?"
Slots = dict[str, dict[str, list[int]]]
CASES: list[tuple[str, str, list[str], list[str], Slots]] = [
    # the rule, the nodes that are there, the gangs in order, the pools, what is got
    ("as many as it needs", EMPTY, ["a: 4x8"], ["p: 8x8"], {"a": {"p": [0, 1, 2, 3]}}),
    ("none where it fits", "s/l: n1:8 n2:8", ["a: 2x8"], ["p: 8x8"], {}),
    ("only what is missing", "s/l: n1:8", ["a: 3x8"], ["p: 8x8"], {"a": {"p": [0, 1]}}),
    ("whole gangs or nothing", EMPTY, ["a: 9x8"], ["p: 8x8"], {}),
    (
        "under one leaf if it must",
        EMPTY,
        ["a: 4x8 leaf"],
        ["p: 8x8 leaf=4"],
        {"a": {"p": [0, 1, 2, 3]}},
    ),
    ("no leaf is large enough", EMPTY, ["a: 5x8 leaf"], ["p: 8x8 leaf=4"], {}),
    ("small pods share nodes", EMPTY, ["a: 9x1"], ["p: 8x8"], {"a": {"p": [0, 1]}}),
    ("gangs share a node", EMPTY, ["a: 2x2", "b: 2x2"], ["p: 8x8"], {"a": {"p": [0]}}),
    (
        "each leaf for itself",
        EMPTY,
        ["a: 3x8 leaf", "b: 3x8 leaf"],
        ["p: 8x8 leaf=4"],
        {"a": {"p": [0, 1, 2]}, "b": {"p": [4, 5, 6]}},
    ),
    (
        "the first in line goes first",
        EMPTY,
        ["a: 6x8", "b: 3x8", "c: 2x8"],
        ["p: 8x8"],
        {"a": {"p": [0, 1, 2, 3, 4, 5]}, "c": {"p": [6, 7]}},
    ),
    (
        "the cheapest pool",
        EMPTY,
        ["a: 2x8"],
        ["p: 8x8 price=20", "q: 8x8 price=10"],
        {"a": {"q": [0, 1]}},
    ),
    (
        "fewer dear nodes where they cost less",
        EMPTY,
        ["a: 8x1"],
        ["p: 8x8 price=10", "q: 8x1 price=2"],
        {"a": {"p": [0]}},
    ),
    (
        "the sooner of equal price",
        EMPTY,
        ["a: 1x8"],
        ["p: 8x8 price=5 arrival=9m", "q: 8x8 price=5 arrival=1m"],
        {"a": {"q": [0]}},
    ),
    (
        "two pools where one is too small",
        EMPTY,
        ["a: 3x8"],
        ["p: 2x8 price=1", "q: 8x8 price=5"],
        {"a": {"p": [0, 1], "q": [0]}},
    ),
    (
        "each kind from its pool",
        EMPTY,
        ["a: head=1xcpu90 + worker=2x8"],
        ["cpu: 4x0 price=1", "gpu: 4x8 price=10 cpu=32"],
        {"a": {"cpu": [0], "gpu": [0, 1]}},
    ),
    ("a template no pod fits", EMPTY, ["a: 1x8"], ["p: 8x4"], {}),
    ("not beyond the budget", EMPTY, ["a: 3x8"], ["p: 8x8 price=10 budget=20"], {}),
    ("up to the budget", EMPTY, ["a: 2x8"], ["p: 8x8 price=10 budget=20"], {"a": {"p": [0, 1]}}),
    ("the minimum is always there", EMPTY, [], ["p: 2..8x8"], {"min": {"p": [0, 1]}}),
    ("the minimum serves gangs, too", EMPTY, ["a: 2x8"], ["p: 2..8x8"], {"min": {"p": [0, 1]}}),
]


@pytest.mark.parametrize(
    ("rule", "nodes", "gangs", "pools", "expected"), CASES, ids=[case[0] for case in CASES]
)
def test_growth(rule: str, nodes: str, gangs: list[str], pools: list[str], expected: Slots) -> None:
    cluster = draw(Cluster(), nodes)
    for number, text in enumerate(gangs):
        add(cluster, draw_gang(text, created=CREATED.format(number)))
    assert bought(grow(cluster, [pool(text) for text in pools], NOW)) == expected


def test_the_cluster_is_as_before() -> None:
    cluster = draw(Cluster(), "s/l: n1:8")
    add(cluster, draw_gang("a: 3x8"))
    names, free = set(cluster.table.rows), cluster.table.free.sum()
    for _ in range(3):
        assert bought(grow(cluster, [pool("p: 8x8")], NOW)) == {"a": {"p": [0, 1]}}
    assert set(cluster.table.rows) == names
    assert cluster.table.free.sum() == free
    assert not places(cluster, "a-")


def request(slots: list[int], *gangs: str, at: str = "1970-01-12T13:46:40Z") -> dict[str, Any]:
    holders = [{"kind": "Gang", "namespace": "default", "name": g, "uid": g} for g in gangs]
    return {"id": "r", "slots": slots, "at": at, "holders": holders, "sent": True}


def test_what_is_on_its_way_is_not_bought_twice() -> None:
    cluster = draw(Cluster(), EMPTY)
    add(cluster, draw_gang("a: 4x8"))
    status = {"requests": [request([0, 1, 2], "a")]}
    found = grow(cluster, [pool("p: 8x8", status=status)], NOW)
    assert bought(found) == {"a": {"p": [3]}}


def test_a_pool_that_failed_is_left_alone_for_a_while() -> None:
    cluster = draw(Cluster(), EMPTY)
    add(cluster, draw_gang("a: 1x8"))
    status = {"retryAt": "2026-01-01T00:00:00Z", "reason": "OutOfStock", "failures": 1}
    cheap, dear = pool("p: 8x8 price=1", status=status), pool("q: 8x8 price=9")
    assert bought(grow(cluster, [cheap, dear], NOW)) == {"a": {"q": [0]}}
    found = grow(cluster, [cheap], NOW)
    assert "OutOfStock" in next(iter(found.refused.values()))


def test_a_queue_gets_no_nodes_beyond_its_limit() -> None:
    cluster = draw(Cluster(), EMPTY)
    cluster.set_queue(queue("default", limit={"nvidia.com/gpu": 16}))
    add(cluster, draw_gang("a: 2x8", created=CREATED.format(0)))
    add(cluster, draw_gang("b: 1x8", created=CREATED.format(1)))
    assert bought(grow(cluster, [pool("p: 8x8")], NOW)) == {"a": {"p": [0, 1]}}


def test_a_simulated_node_helps_only_gangs_that_asked_for_one() -> None:
    cluster = draw(Cluster(), EMPTY)
    add(cluster, draw_gang("a: 1x8"))
    simulated = pool("p: 8x8", provider={"simulated": {}})
    node = simulated.node(0)
    assert not bought(grow(cluster, [simulated], NOW))
    assert node.metadata.labels["lockstep.dev/node"] == "simulated"
    assert [taint.key for taint in node.spec.taints] == ["lockstep.dev/simulated"]


@pytest.mark.parametrize(
    ("taint", "ready"),
    [("", True), ("node.kubernetes.io/not-ready", False), ("lockstep.dev/held", True)],
)
def test_a_node_is_on_its_way_until_pods_may_come(taint: str, ready: bool) -> None:
    labels = {"lockstep.dev/pool-slot": "0"}
    there = node("p-0", labels=labels, taints=[taint] if taint else [])
    found = seen(node_pool("p: 8x8", status={"requests": [request([0], "a")]}), [there], None)
    assert (found.ready, found.coming) == (({0}, set()) if ready else (set(), {0}))
