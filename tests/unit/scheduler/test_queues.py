"""Queues: who may have how much, whose turn it is, and what is said of it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.drawn import Drawn, add, draw, draw_gang, gang, node, places, pod, queue
from tests.support.running import Running

from lockstep.api.core import Pod, PriorityClass
from lockstep.api.gang import Gang, GangStatus
from lockstep.api.meta import ObjectMeta
from lockstep.scheduler.core.cluster import Cluster
from lockstep.scheduler.core.decide import Decider
from lockstep.scheduler.core.explain import explain
from lockstep.scheduler.core.queues.words import queue_status
from lockstep.scheduler.core.units import UnitKey

GPU = "nvidia.com/gpu"
WIDE = "s/l: a:8 b:8 c:8 d:8"


def cluster_with(drawing: str, queues: dict[str, dict[str, Any]]) -> Cluster:
    cluster = draw(Cluster(), drawing)
    for name, spec in queues.items():
        cluster.set_queue(queue(name, **spec))
    return cluster


def submit(cluster: Cluster, text: str, name: str, age: int = 0, **spec: Any) -> Drawn:
    drawn = draw_gang(text, created=f"2026-01-01T00:{age // 60:02}:{age % 60:02}Z", queue=name)
    if spec:
        raise AssertionError(spec)
    add(cluster, drawn)
    return drawn


def gpus(amount: int) -> dict[str, int]:
    return {GPU: amount}


def placed(cluster: Cluster) -> set[str]:
    return {name.partition("-")[0] for name in places(cluster)}


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
    "nothing, where the queue does not exist": ({"other": {}}, ["a: 4x8"], {"a"}),
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


def test_a_limit_of_a_model_that_binds_is_told_and_no_place_is_kept_for_it():
    world = Running(models(Cluster(), h100=3))
    world.cluster.set_queue(queue("q", limit={f"{GPU}/H100": 8}))
    timed = {"lockstep.dev/runtime": "600"}
    world.run("x: 1x8", queue="other", annotations=timed)
    world.run("big: 2x8", queue="q", annotations=timed)
    assert world.why("big") == (
        "OverQuota",
        "needs 16 GPUs; queue q uses 0 of the 8 H100 GPUs of its limit: 8 H100 GPUs short",
    )
    assert world.cluster.reservation is None
    assert world.decider.decide(world.now).wake_at is None
    world.cluster.set_queue(queue("q", limit={f"{GPU}/H100": 16}))
    world.settle()
    assert world.there() == {"x", "big"}


def test_room_that_a_model_is_limited_to_is_reserved():
    world = Running(models(Cluster(), h100=1, a100=2))
    world.cluster.set_queue(queue("q", limit={f"{GPU}/A100": 0}))
    timed = {"lockstep.dev/runtime": "600"}
    world.run("x: 3x8", queue="other", annotations=timed)
    world.run("y: 1x8", queue="q", annotations=timed)
    assert world.cluster.reservation is not None
    assert set(world.cluster.reservation.wanted) == {"h100-0"}


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
    "a missing queue is one like the others": ({"q": {}}, "qqqqxxxx", {"q": 2, "x": 2}),
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
    assert {k.name: place for k, place in decider.line.places().items()} == {"q1": 1, "r2": 1}


def test_a_resumed_gang_stands_in_line_where_it_stood_before():
    cluster = cluster_with("s/l: a:8", {"q": {}})
    for second, name in ((1, "first"), (5, "second"), (9, "resumed")):
        created = f"2026-01-01T00:00:0{second}Z"
        add(cluster, draw_gang(f"{name}: 1x8", created=created, queue="q"))
    decider = Decider(cluster)
    decider.waiting()
    assert [k.name for k in decider.line.all()] == ["first", "second", "resumed"]
    old = cluster.units[UnitKey("Gang", "default", "resumed")].gang
    status = GangStatus(queued_at="2026-01-01T00:00:03Z")
    cluster.set_gang(Gang(metadata=old.metadata, spec=old.spec, status=status))
    decider.decide(0.0)
    assert placed(cluster) == {"first"}
    assert {k.name: place for k, place in decider.line.places().items()} == {
        "resumed": 1,
        "second": 2,
    }


def test_only_the_first_of_a_kind_is_tried_again_until_something_is_freed():
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


def waits(cluster: Cluster, name: str) -> tuple[str, str, str]:
    verdict = explain(cluster, cluster.units[UnitKey("Gang", "default", name)])
    return verdict.reason, verdict.message, verdict.remedy


def test_words_say_which_limit_binds_and_by_how_much():
    cluster = cluster_with(WIDE, {"org": {"limit": gpus(24)}, "q": {"parent": "org"}})
    submit(cluster, "a: 2x8", "q")
    submit(cluster, "b: 2x8", "q", 1)
    decider = Decider(cluster)
    assert [k.name for k in decider.decide(0.0).failed] == ["b"]
    assert waits(cluster, "b") == (
        "OverQuota",
        "needs 16 GPUs; queue org uses 16 of the 24 GPUs of its limit: 8 GPUs short; "
        "held by gang a (16 GPUs)",
        "8 GPUs given back in queue org, or a limit of 32 GPUs there",
    )


@pytest.mark.parametrize(
    ("change", "starts"),
    [({"limit": gpus(31)}, False), ({"limit": gpus(32)}, True), ({}, True)],
)
def test_what_the_words_say_would_help_helps(change: dict[str, Any], starts: bool):
    cluster = cluster_with(WIDE, {"q": {"limit": gpus(24)}})
    submit(cluster, "a: 2x8", "q")
    submit(cluster, "b: 2x8", "q", 1)
    decider = Decider(cluster)
    decider.decide(0.0)
    cluster.set_queue(queue("q", **change))
    assert bool(decider.decide(1.0).placements) == starts


@pytest.mark.parametrize(
    ("used", "asked", "most"), [("", "3x8", 2), ("a: 1x8", "3x8", 1), ("a: 2x8", "3x8", 0)]
)
def test_what_is_said_to_be_the_most_to_ask_for_is_let_in_and_no_more(
    used: str, asked: str, most: int
):
    def tried(size: str) -> tuple[Cluster, bool]:
        cluster = cluster_with(WIDE, {"q": {"limit": gpus(16)}})
        if used:
            submit(cluster, used, "q")
        Decider(cluster).decide(0.0)
        submit(cluster, f"b: {size}", "q", 1)
        return cluster, bool(Decider(cluster).decide(1.0).placements)

    said = waits(tried(asked)[0], "b")[2]
    assert said.startswith(f"at most {8 * most} GPUs asked for, or a limit of ") == bool(most)
    assert ("asked for" in said) == bool(most)
    assert [tried(f"{pods}x8")[1] for pods in (1, 2)] == [most >= 1, most >= 2]


def test_words_for_more_than_the_limit_and_for_what_is_not_lent():
    cluster = cluster_with(WIDE, {"q": {"limit": gpus(8)}, "r": {}, "s": {"guaranteed": gpus(24)}})
    submit(cluster, "a: 2x8", "q")
    Decider(cluster).decide(0.0)
    assert waits(cluster, "a")[2] == ("at most 8 GPUs asked for, or a limit of 16 GPUs in queue q")
    cluster.set_queue(queue("s", guaranteed=gpus(24), lending="Never"))
    submit(cluster, "b: 2x8", "r")
    Decider(cluster).decide(0.0)
    assert waits(cluster, "b")[1] == (
        "needs 16 GPUs; of 32 GPUs in the cluster 24 GPUs are in use or kept by queues that do not "
        "lend them: 8 GPUs short"
    )


def test_room_and_quota_together():
    """Nothing is admitted that cannot be placed: a sum that fits does not hold quota."""
    cluster = cluster_with("s/x: a:4 b:4\n s/y: c:8", {"q": {"limit": gpus(8)}})
    submit(cluster, "big: 2x4 leaf", "q")
    submit(cluster, "small: 1x8", "q", 1)
    cluster.set_pod(pod("other", gpus=1, on="a", held="0", scheduler="theirs"))
    cluster.set_pod(pod("more", gpus=5, on="c", held="0,1,2,3,4", scheduler="theirs"))
    decider = Decider(cluster)
    decider.decide(0.0)
    assert placed(cluster) - {"other", "more"} == set()
    assert waits(cluster, "big")[0] == "NotEnoughRoom"
    cluster.remove_pod("default", "more")
    decider.decide(0.0)
    assert "small" in placed(cluster) or "big" in placed(cluster)


TEAM = {"labels": {"lockstep.dev/queue": "team"}}


def member(i: int, **more: Any) -> Pod:
    return pod(f"g-{i}", gpus=2, cpu="1500m", gang="g", **more)


@pytest.mark.parametrize(
    ("gangs", "pods", "expected"),
    [
        ([], [], {"team": (0, 0, {}), "default": (0, 0, {})}),
        ([gang("g", minMember=1)], [member(0)], {"default": (1, 0, {}), "team": (0, 0, {})}),
        (
            [gang("g", minMember=2, queue="team")],
            [member(0), member(1)],
            {"team": (1, 0, {})},
        ),
        (
            [gang("g", minMember=2, queue="team")],
            [member(0, on="a1"), member(1, on="a2")],
            {"team": (0, 1, {"cpu": 3, GPU: 4})},
        ),
        (  # one that ended holds nothing
            [gang("g", minMember=2, queue="team")],
            [member(0, on="a1"), member(1, on="a2", phase="Succeeded")],
            {"team": (0, 1, {"cpu": "1500m", GPU: 2})},
        ),
        (  # pods on their own are in the queue that they name, or in the default one
            [],
            [pod("a", gpus=1, on="a1"), pod("b", gpus=1), pod("c", gpus=1, **TEAM)],
            {"default": (1, 1, {GPU: 1}), "team": (1, 0, {})},
        ),
        (  # what a part holds its whole holds
            [gang("g", minMember=2, queue="part")],
            [member(0, on="a1"), member(1, on="a2")],
            {"team": (0, 1, {"cpu": 3, GPU: 4}), "part": (0, 1, {"cpu": 3, GPU: 4})},
        ),
    ],
)
def test_status(
    gangs: list[Gang], pods: list[Pod], expected: dict[str, tuple[int, int, dict[str, Any]]]
) -> None:
    cluster = draw(Cluster(), "s/a: a1:8 a2:8")
    for one in [queue("team"), queue("default"), queue("part", parent="team")]:
        cluster.set_queue(one)
    for one in pods:  # in any order: the gang that names the queue may come last
        cluster.set_pod(one)
    for one in gangs:
        cluster.set_gang(one)
    decider = Decider(cluster)
    decider.waiting()
    for name, wanted in expected.items():
        status = queue_status(cluster, name, decider.line.pending)
        assert (status["pending"], status["running"], status["used"]) == wanted


@pytest.mark.parametrize(
    ("queues", "message"),
    [
        ({"q": {"parent": "nobody"}}, "its parent nobody does not exist; it is taken as a top"),
        ({"q": {"parent": "q"}}, "it is part of itself by way of q; it is taken as a top queue"),
        ({"q": {"parent": "r"}, "r": {"parent": "q"}}, "it is part of itself by way of r"),
        ({"q": {"parent": "r"}, "r": {}}, ""),
    ],
)
def test_a_misplaced_queue_says_so(queues: dict[str, dict[str, Any]], message: str):
    cluster = cluster_with(WIDE, queues)
    submit(cluster, "a: 1x8", "q")
    Decider(cluster).decide(0.0)
    assert placed(cluster) == {"a"}
    (condition,) = queue_status(cluster, "q", {})["conditions"]
    assert condition["status"] == ("False" if message else "True")
    assert condition["message"].startswith(message)


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
