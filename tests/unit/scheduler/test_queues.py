"""Queues: who may have how much, whose turn it is, and what is said of it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.drawn import add, draw_gang, node, places, queue
from tests.support.queued import WIDE, cluster_with, gpus, placed, submit
from tests.support.running import Running

from lockstep.api.core import PriorityClass
from lockstep.api.gang import Gang, GangStatus
from lockstep.api.meta import ObjectMeta
from lockstep.api.names import GPU
from lockstep.scheduler.core.cycle.decider import Decider
from lockstep.scheduler.core.model.workload import WorkloadKey
from lockstep.scheduler.core.state.cluster import Cluster

LIMITS = {
    "its own limit": ({"q": {"limit": gpus(16)}}, ["a: 1x8", "b: 1x8", "c: 1x8"], {"a", "b"}),
    "the limit of a queue that it is part of": (
        {"org": {"limit": gpus(16)}, "q": {"parent": "org"}, "r": {"parent": "org"}},
        ["a: 1x8", "b: 2x8", "c: 1x8"],
        {"a", "c"},
    ),
    "a limit of none": ({"q": {"limit": gpus(0)}}, ["a: 1x8", "b: 1xcpu4"], {"b"}),
    "what it may borrow beyond what it is guaranteed": (
        {"q": {"guaranteed": gpus(8), "borrowingLimit": gpus(8)}},
        ["a: 1x8", "b: 1x8", "c: 1x8"],
        {"a", "b"},
    ),
    "what others do not lend": (
        {"q": {}, "r": {"guaranteed": gpus(16), "lending": "Never"}},
        ["a: 1x8", "b: 1x8", "c: 1x8"],
        {"a", "b"},
    ),
    "what others do not lend all of": (
        {"q": {}, "r": {"guaranteed": gpus(16), "lendingLimit": gpus(8)}},
        ["a: 1x8", "b: 1x8", "c: 1x8", "d: 1x8"],
        {"a", "b", "c"},
    ),
    "what is kept by a part of a sibling": (
        {
            "q": {},
            "org": {},
            "team": {"parent": "org", "guaranteed": gpus(24), "lending": "Never"},
        },
        ["a: 1x8", "b: 1x8"],
        {"a"},
    ),
    "CPUs as well as GPUs": ({"q": {"limit": {"cpu": 6}}}, ["a: 1xcpu4", "b: 1xcpu4"], {"a"}),
    "anything at all, where the queue does not exist": ({"other": {}}, ["a: 1x1"], set()),
    "as much as there is, where there are no queues": ({}, ["a: 4x8"], {"a"}),
    "extras of an elastic gang": ({"q": {"limit": gpus(16)}}, ["a: 1..4x8"], {"a"}),
}


@pytest.mark.parametrize(("queues", "gangs", "expected"), LIMITS.values(), ids=LIMITS)
def test_a_queue_uses_no_more_than(
    queues: dict[str, dict[str, Any]], gangs: list[str], expected: set[str]
) -> None:
    cluster = cluster_with(WIDE, queues)
    for age, text in enumerate(gangs):
        submit(cluster, text, "q", age)
    Decider(cluster).decide(0.0)
    assert placed(cluster) == expected
    if any("limit" in spec for spec in queues.values()) and "a: 1..4x8" in gangs:
        assert len(places(cluster)) == 2


def test_a_queue_that_keeps_its_share_may_use_it():
    cluster = cluster_with(WIDE, {"r": {"guaranteed": gpus(16), "lending": "Never"}, "q": {}})
    for age, text in enumerate(["a: 1x8", "b: 1x8", "c: 1x8"]):
        submit(cluster, text, "q", age)
    submit(cluster, "r: 2x8", "r", 9)
    Decider(cluster).decide(0.0)
    assert placed(cluster) == {"a", "b", "r"}


def models(cluster: Cluster, **counts: int) -> Cluster:
    for name, number in counts.items():
        for i in range(number):
            labels = {"spine": "s", "leaf": name, "nvidia.com/gpu.product": name.upper()}
            cluster.set_node(node(f"{name}-{i}", labels=labels))
    return cluster


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        ({f"{GPU}/H100": 8}, {"h100": 1, "a100": 2}),
        ({f"{GPU}/H100": 0, f"{GPU}/A100": 8}, {"a100": 1}),
        ({f"{GPU}/H100": 0, f"{GPU}/A100": 0}, {}),
        ({GPU: 24, f"{GPU}/H100": 0}, {"a100": 2}),
        ({f"{GPU}/V100": 0}, {"h100": 2, "a100": 2}),
    ],
)
def test_gpus_of_a_model_are_a_resource_of_their_own(
    limit: dict[str, int], expected: dict[str, int]
) -> None:
    cluster = models(Cluster(), h100=2, a100=2)
    cluster.set_queue(queue("q", limit=limit))
    for i in range(4):
        submit(cluster, f"g{i}: 1x8", "q", i)
    Decider(cluster).decide(0.0)
    found = [name.rpartition("-")[0] for name in places(cluster).values()]
    assert {model: found.count(model) for model in sorted(found)} == expected


def test_a_binding_model_limit_is_reported_and_reserves_no_place():
    world = Running(models(Cluster(), h100=3))
    world.cluster.set_queue(queue("q", limit={f"{GPU}/H100": 8}))
    timed = {"lockstep.dev/runtime": "600"}
    world.run("x: 1x8", queue="default", annotations=timed)
    world.run("big: 2x8", queue="q", annotations=timed)
    assert world.why("big") == (
        "OverQuota",
        "needs 16 GPUs; queue q uses 0 of the 8 H100 GPUs of its limit: 8 H100 GPUs short",
    )
    assert world.cluster.reservations.room is None
    assert world.decider.decide(world.now).wake_at is None
    world.cluster.set_queue(queue("q", limit={f"{GPU}/H100": 16}))
    world.settle()
    assert world.there() == {"x", "big"}


def test_room_that_a_model_is_limited_to_is_reserved():
    world = Running(models(Cluster(), h100=1, a100=2))
    world.cluster.set_queue(queue("q", limit={f"{GPU}/A100": 0}))
    timed = {"lockstep.dev/runtime": "600"}
    world.run("x: 3x8", queue="default", annotations=timed)
    world.run("y: 1x8", queue="q", annotations=timed)
    assert world.cluster.reservations.room is not None
    assert set(world.cluster.reservations.room.wanted) == {"h100-0"}


TURNS = {
    "queues take turns whatever their ages": ({"q": {}, "r": {}}, "qqqqrr", {"q": 2, "r": 2}),
    "weights": ({"q": {"weight": 3}, "r": {}}, "rrrrqqqq", {"q": 3, "r": 1}),
    "what is guaranteed comes first": (
        {"q": {"guaranteed": gpus(24)}, "r": {}},
        "rrrrqqqq",
        {"q": 3, "r": 1},
    ),
    "a guarantee of nothing is none": (
        {"q": {"guaranteed": gpus(0)}, "r": {}},
        "qqqqrrrr",
        {"q": 2, "r": 2},
    ),
    "a queue without weight gets what the others leave": (
        {"q": {"weight": 0}, "r": {}},
        "qqqqrrr",
        {"q": 1, "r": 3},
    ),
    "parts share what their whole gets": (
        {"org": {}, "q": {"parent": "org"}, "r": {"parent": "org"}, "t": {}},
        "qqqqrrrrtttt",
        {"q": 1, "r": 1, "t": 2},
    ),
    "in a queue with parts and gangs of its own": (
        {"q": {}, "r": {"parent": "q"}},
        "qqqqrrrr",
        {"q": 2, "r": 2},
    ),
    "nothing starts in a missing queue": ({"q": {}}, "xxxxqq", {"q": 2}),
}


@pytest.mark.parametrize(("queues", "order", "expected"), TURNS.values(), ids=TURNS)
def test_fair_share(queues: dict[str, dict[str, Any]], order: str, expected: dict[str, int]):
    cluster = cluster_with(WIDE, queues)
    for age, name in enumerate(order):
        submit(cluster, f"{name}{age}: 1x8", name, age)
    Decider(cluster).decide(0.0)
    found = [name[0] for name in places(cluster)]
    assert {name: found.count(name) for name in sorted(found)} == expected


def test_the_dominant_resource_decides():
    cluster = cluster_with("s/l: a:8 b:8", {"q": {}, "r": {}})
    submit(cluster, "q0: 1xcpu96", "q")  # half of all CPUs
    Decider(cluster).decide(0.0)
    for i in range(2):
        submit(cluster, f"q{i + 1}: 1x6", "q", i + 1)
        submit(cluster, f"r{i + 1}: 1x6", "r", i + 3)
    Decider(cluster).decide(0.0)
    assert placed(cluster) == {"q0", "r1"} or placed(cluster) == {"q0", "r1", "r2"}


def test_priority_and_age_order_a_queue_but_not_queues():
    cluster = cluster_with("s/l: a:8 b:8", {"q": {}, "r": {}})
    cluster.set_priority_class(PriorityClass(metadata=ObjectMeta(name="high"), value=9))
    for age, (name, more) in enumerate(
        [("q1", {}), ("q2", {"priorityClassName": "high"}), ("r1", {}), ("r2", {})]
    ):
        created = f"2026-01-01T00:00:0{age}Z"
        add(cluster, draw_gang(f"{name}: 1x8", created=created, queue=name[0], **more))
    decider = Decider(cluster)
    decider.decide(0.0)
    assert placed(cluster) == {"q2", "r1"}
    assert {k.name: place for k, place in decider.pending_queue.places().items()} == {
        "q1": 1,
        "r2": 1,
    }


def test_a_resumed_gang_stands_in_line_where_it_stood_before():
    cluster = cluster_with("s/l: a:8", {"q": {}})
    for second, name in ((1, "first"), (5, "second"), (9, "resumed")):
        created = f"2026-01-01T00:00:0{second}Z"
        add(cluster, draw_gang(f"{name}: 1x8", created=created, queue="q"))
    decider = Decider(cluster)
    decider.waiting()
    assert [k.name for k in decider.pending_queue.all()] == ["first", "second", "resumed"]
    old = cluster.workloads[WorkloadKey("Gang", "default", "resumed")].gang
    status = GangStatus(queued_at="2026-01-01T00:00:03Z")
    cluster.set_gang(Gang(metadata=old.metadata, spec=old.spec, status=status))
    decider.decide(0.0)
    assert placed(cluster) == {"first"}
    assert {k.name: place for k, place in decider.pending_queue.places().items()} == {
        "resumed": 1,
        "second": 2,
    }


def test_only_the_first_of_a_kind_retries_until_resources_free():
    cluster = cluster_with("s/l: a:8", {"q": {}})
    for i in range(9):
        submit(cluster, f"g{i}: 1x8", "q", i)
    decider = Decider(cluster)
    result = decider.decide(0.0)
    assert (len(result.placements), len(result.failed)) == (1, 1)
    assert decider.decide(1.0).failed == []
    for one in list(places(cluster)):
        cluster.remove_pod("default", one)
    assert len(decider.decide(2.0).placements) == 1


@pytest.mark.parametrize(("half_life", "first"), [(None, "q"), ("10m", "r")])
def test_past_use_counts_where_a_queue_says_so(half_life: str | None, first: str):
    spec = {"usageHalfLife": half_life} if half_life else {}
    cluster = cluster_with("s/l: a:8", {"q": spec, "r": spec})
    submit(cluster, "q1: 1x8", "q")
    decider = Decider(cluster)
    decider.decide(0.0)
    decider.decide(3600.0)
    for name in places(cluster):
        cluster.remove_pod("default", name)
    submit(cluster, "q2: 1x8", "q", 1)
    submit(cluster, "r2: 1x8", "r", 2)
    decider.decide(3601.0)
    assert placed(cluster) == {f"{first}2"}
