"""The first that does not fit has a time and a place; others pass where they do not delay it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.backfilled import at_most, runs
from tests.support.examples import examples
from tests.support.running import Running

from lockstep.scheduler.core.reservations.reserved_nodes import end_of

TWO = "s/l: a:8 b:8"


def busy(runtime: float | None = 600) -> Running:
    """Node a is taken for so long; the gang ``big`` needs both nodes."""
    world = Running.on(TWO)
    world.run("x: 1x8", **runs(runtime))
    world.run("big: 2x8", **runs(100))
    return world


@pytest.mark.parametrize(
    ("text", "runtime", "passes"),
    [
        ("small: 1x8", 300, True),  # it ends before
        ("small: 1x8", 3000, False),  # it would delay the big one
        ("small: 1x8", None, False),  # nobody knows when it ends
        ("small: 1xcpu4", None, True),  # it takes nothing that is kept
    ],
)
def test_who_passes(text: str, runtime: float | None, passes: bool):
    world = busy()
    assert world.cluster.reservations.room is not None
    world.run(text, **runs(runtime))
    assert ("small" in world.there()) == passes


@pytest.mark.parametrize(
    ("queues", "first", "passer", "runtime", "passes"),
    [
        pytest.param({"q": at_most(16), "r": {}}, "r", "q", None, False, id="all of the limit"),
        pytest.param({"q": at_most(24), "r": {}}, "r", "q", None, True, id="enough for both"),
        pytest.param({"q": at_most(16), "r": {}}, "r", "q", 300, True, id="given back in time"),
        pytest.param({"q": at_most(16), "r": {}}, "r", "r", None, True, id="of another queue"),
        pytest.param({"q": at_most(24)}, "q", "q", None, True, id="as much as ends in time"),
        pytest.param(
            {"org": at_most(16), "q": {"parent": "org"}, "r": {"parent": "org"}, "t": {}},
            *("t", "r", None, False),
            id="a limit around both queues",
        ),
        pytest.param(
            {"org": at_most(24), "q": at_most(16, parent="org"), "r": {"parent": "org"}},
            *("r", "r", None, True),
            id="there is enough around both queues once others end",
        ),
        pytest.param(
            {"q": at_most(16), "r": {"guaranteed": {"nvidia.com/gpu": 8}, "lending": "Never"}},
            *("r", "q", None, False),
            id="where some queue keeps what it does not use",
        ),
    ],
)
def test_who_passes_leaves_the_quota_that_is_promised(
    queues: dict[str, dict[str, Any]], first: str, passer: str, runtime: float | None, passes: bool
):
    world = Running.on("s/l1: a:8 b:8\ns/l2: c:8", queues)
    world.run("x: 1x8 leaf", first, **runs(600))
    world.run("big: 2x8 leaf", "q", **runs(100))
    world.run("small: 1x8", passer, **runs(runtime))
    assert world.there() == ({"x", "small"} if passes else {"x"})
    if not passes:
        reason, message = world.why("small")
        assert reason == "OverQuota"
        assert "kept for gang big until 1970-01-12T13:56:41Z from what may run longer" in message
    if runtime is not None:
        world.now += runtime
        world.end("small")
    world.now += 600
    world.end("x")
    world.settle()
    assert "big" in world.there()
    assert ("small" in world.there()) == (passes and runtime is None)


def test_an_unknown_run_time_is_never_assumed_to_end():
    world = busy(runtime=None)
    assert world.cluster.reservations.room is None
    world.run("small: 1x8")
    assert world.there() == {"x", "small"}


@pytest.mark.parametrize("later", [0.5, 5.0], ids=["within a second", "some time later"])
def test_a_gang_behind_one_of_unknown_length_gets_its_estimate(later: float):
    world = Running.on("s/l: a:8 b:8 c:8 d:8")
    world.run("ends: 1x8", **runs(600))
    world.run("goes-on: 1x8")
    world.run("all: 4x8", **runs(100))
    assert world.cluster.reservations.room is None
    world.now += later - 1.0  # a second goes by as it is submitted
    world.submit("most: 3x8", **runs(100))
    due = world.step().wake_at
    if later < 1.0:
        assert due is not None
        world.now = due
        assert {key.name for key in world.step().touched} == {"most"}
    held = world.cluster.reservations.room
    assert held is not None and held.workload.name == "most"
    world.now += 10.0
    world.run("small: 1x8")
    assert "small" not in world.there()


def test_words_and_the_end():
    world = busy()
    reason, message = world.why("big")
    assert reason == "NotEnoughRoom"
    assert "by the run times stated it starts at 1970-01-12T13:56:41Z at the latest" in message
    world.run("small: 1x8")
    assert "room is kept for gang big until 1970-01-12T13:56:41Z" in world.why("small")[1]
    world.end("x")
    world.settle()
    assert world.there() == {"big"}
    assert world.cluster.reservations.room is not None
    assert world.cluster.reservations.room.workload.name == "small", (
        "it is the first that waits now"
    )
    assert world.cluster.table.held.sum() == 0


@pytest.mark.parametrize(
    ("weights", "starts"),
    [
        pytest.param({"q": 1, "r": 1}, "rw1", id="the queue that holds less"),
        pytest.param({"q": 9, "r": 1}, "qw1", id="the queue that holds less for its weight"),
        pytest.param({"q": 0, "r": 1}, "rw1", id="weight 0 comes last"),
    ],
)
def test_a_reserved_place_goes_to_the_smallest_share(weights: dict[str, int], starts: str):
    world = Running.on("s/l: a:8 b:8 c:8 d:8", {q: {"weight": w} for q, w in weights.items()})
    world.run("q1: 1x8", "q", **runs(1000))
    world.run("q2: 1x8", "q", **runs(600))
    world.run("q3: 1x8", "q", **runs(4000))
    world.run("r1: 1x8", "r", **runs(2000))
    world.run("qw1: 1x8", "q", **runs(3000))
    assert world.cluster.reservations.room is not None
    for name, queue in (("rw1", "r"), ("qw2", "q"), ("rw2", "r"), ("qw3", "q")):
        world.run(f"{name}: 1x8", queue, **runs(3000))
    world.now = world.cluster.reservations.room.at
    world.end("q2")
    world.settle()
    assert world.there() == {"q1", "q3", "r1", starts}
    assert world.cluster.reservations.room is not None


def test_the_more_important_goes_before_it():
    world = busy()
    world.run("vip: 1x8", priority="high")
    assert "vip" in world.there()


def test_what_is_overdue_is_not_waited_for():
    world = busy()
    world.now += 10_000
    world.run("small: 1x8")
    assert world.there() == {"x", "small"}


def test_an_older_gang_that_lost_its_place_goes_first():
    world = Running.on(TWO, {"q": {"guaranteed": {"nvidia.com/gpu": 16}}, "r": {}})
    world.run("old: 2x8", "r", **runs(500))
    world.run("new: 2x8", "r", **runs(500))
    held = world.cluster.reservations.room
    assert held is not None
    assert held.workload.name == "new"
    world.run("owner: 2x8", "q", **runs(50))
    assert world.evicted == ["old"]
    world.end("owner")
    world.settle()
    assert world.there() == {"old"}


LENDS = {"q": {"guaranteed": {"nvidia.com/gpu": 16}}, "r": {}}


def borrowing() -> Running:
    """Queue r has borrowed node a for so long; its gang ``big`` waits for both nodes."""
    world = Running.on(TWO, LENDS)
    world.run("x: 1x8", "r", **runs(600))
    world.run("big: 2x8", "r", **runs(100))
    held = world.cluster.reservations.room
    assert held is not None
    assert held.workload.name == "big"
    return world


@pytest.mark.parametrize(
    ("text", "evicted"),
    [("owner: 1x8", []), ("owner: 2x8", ["x"])],
    ids=["free", "lent"],
)
def test_guaranteed_quota_is_not_reserved_for_a_borrower(text: str, evicted: list[str]):
    world = borrowing()
    world.run(text, "q")
    assert "owner" in world.there()
    assert world.evicted == evicted


def test_use_beyond_the_guarantee_respects_the_reserved_place():
    world = Running.on(TWO, {"q": {"guaranteed": {"nvidia.com/gpu": 4}}, "r": {}})
    world.run("x: 1x8", "r", **runs(600))
    world.run("big: 2x8", "r", **runs(100))
    world.run("more: 1x8", "q")
    assert world.there() == {"x"}


def test_one_claim_does_not_go_before_another():
    gpus = {"nvidia.com/gpu": 16}
    queues = {"q": {"guaranteed": gpus, "preemption": "Never"}, "p": {"guaranteed": gpus}}
    world = Running.on(TWO, queues)
    world.run("x: 1x8", "q", "low", **runs(600))
    world.run("big: 2x8", "q", **runs(100))
    world.run("other: 1x8", "p")
    assert world.there() == {"x"}


def test_of_two_claims_that_of_the_deeper_queue_goes_first():
    gpus = {"nvidia.com/gpu": 8}
    parts = {name: {"parent": "org", "guaranteed": gpus} for name in ("q", "p")}
    world = Running.on(TWO, {"org": {"guaranteed": {"nvidia.com/gpu": 16}}, **parts})
    world.run("x: 1x8", "q", "low", **runs(600))
    world.run("big: 2x8", "q", **runs(100))
    world.run("own: 1x8", "p")
    assert world.there() == {"x", "own"}


def test_a_passing_gang_keeps_the_place_while_others_leave():
    world = Running.on(TWO, {"q": {}, "r": {}})
    world.run("x: 1x8", "r", **runs(600))
    world.run("y: 1x8", "q", "low", **runs(600))
    world.run("big: 2x8", "r", **runs(100))
    world.graceful = True
    world.run("small: 1x8", "q", **runs(500))
    assert world.evicted == ["y"]
    world.now += 200
    world.end("y", again=True)
    world.settle()
    assert world.there() == {"x", "small"}
    held = world.cluster.reservations.room
    assert held is not None
    assert held.workload.name == "y", "what was told to the other does not hold any more"


def test_nobody_goes_for_room_that_is_kept_for_another():
    gpus = {"nvidia.com/gpu": 8}
    world = Running.on(TWO, {"q": {"guaranteed": gpus}, "r": {}})
    world.run("x: 1x8", "r", "low", **runs(600))
    world.run("y: 1x8", "r", "low", **runs(600))
    world.run("big: 2x8", "q", **runs(100))
    world.run("late: 1x8", "q")
    assert world.evicted == []
    assert world.there() == {"x", "y"}
    world.run("urgent: 1x8", "q", "high")
    assert world.evicted == ["y"]
    assert world.there() == {"x", "urgent"}


@pytest.mark.parametrize("gone", ["big", "node"])
def test_nothing_is_kept_for_what_is_gone(gone: str):
    world = busy()
    if gone == "node":
        world.cluster.remove_node("b")
    else:
        world.end("big")
    world.settle()
    assert world.cluster.reservations.room is None
    assert world.cluster.table.held.sum() == 0


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 8), st.sampled_from([None, 50, 400, 5000])), max_size=8),
    st.lists(st.integers(100, 900), min_size=1, max_size=3),
)
def test_backfill_never_moves_the_time_of_the_first(passing, ends):
    world = Running.on("s/l: a:8 b:8 c:8")
    for number, seconds in enumerate(ends):
        world.run(f"x{number}: 1x8", **runs(float(seconds)))
    world.run("big: 3x8", **runs(100))
    held = world.cluster.reservations.room
    assert held is not None
    due = held.at
    for number, (gpus, runtime) in enumerate(passing):
        world.run(f"p{number}: 1x{gpus}", **runs(runtime))
        now = world.cluster.reservations.room
        assert now is not None
        assert (now.workload.name, now.at) == ("big", due)
    while "big" not in world.there():
        ending = {
            end: member.labels["lockstep.dev/gang"]
            for member in world.cluster.pods.values()
            if member.node and (end := end_of(world.cluster, member)) is not None
        }
        world.now = min(ending)
        assert world.now <= due, "it starts when its time has come, if all end as they said"
        world.end(ending[world.now])
        world.settle()
