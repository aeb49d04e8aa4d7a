"""Whose turn it is: what is guaranteed before what is borrowed, so that nobody starts in vain."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.running import Running

from lockstep.scheduler.core.cycle.result import CycleResult
from lockstep.scheduler.core.cycle.tentative_placements import TentativePlacements
from lockstep.scheduler.core.cycle.timers import Timers
from lockstep.scheduler.core.model.decisions import Placement
from lockstep.scheduler.core.model.workload import WorkloadKey
from lockstep.scheduler.core.state.cluster import Cluster

Queues = dict[str, dict[str, Any]]
ONE, TWO = "s/l: a:8", "s/l: a:8 b:8"


def gpus(number: int, **more: Any) -> dict[str, Any]:
    return {"guaranteed": {"nvidia.com/gpu": number}, **more}


@pytest.mark.parametrize(
    ("nodes", "queues", "waiting", "there"),
    [
        pytest.param(
            ONE,
            {"a": gpus(0), "b": gpus(8)},
            [("x: 1x8", "a", ""), ("own: 1x8", "b", "")],
            {"own"},
            id="a guaranteed amount of nothing is none",
        ),
        pytest.param(
            TWO,
            {"a": gpus(8), "b": gpus(8)},
            [("large: 2x8", "a", ""), ("own: 1x8", "b", "")],
            {"own"},
            id="a guaranteed amount that does not hold the next one is no claim",
        ),
        pytest.param(
            ONE,
            {"a": gpus(4), "b": gpus(8)},
            [("x: 1x8", "a", ""), ("large: 2x8", "b", "high"), ("own: 1x8", "b", "")],
            {"own"},
            id="a claim may wait behind one of its queue that finds no room",
        ),
        pytest.param(
            TWO,
            {"a": {}, "b": gpus(8)},
            [("x: 1x8", "a", ""), ("large: 2x8", "b", "high"), ("own: 1x8", "b", "")],
            {"large"},
            id="the more important of its queue goes before it nevertheless",
        ),
        pytest.param(
            TWO,
            {"p": gpus(8), "a": {"parent": "p"}, "q": gpus(8), "b": {"parent": "q"}},
            [("large: 2x8", "a", ""), ("own: 1x8", "b", "")],
            {"own"},
            id="what is next in the parts of a queue claims what that is guaranteed",
        ),
        pytest.param(
            TWO,
            {"a": gpus(8), "b": gpus(8)},
            [("elastic: 1..2x8", "a", ""), ("own: 1x8", "b", "")],
            {"elastic", "own"},
            id="members above a minimum are not started where somebody claims their place",
        ),
    ],
)
def test_nobody_starts_whose_place_is_claimed_at_the_same_moment(
    nodes: str, queues: Queues, waiting: list[tuple[str, str, str]], there: set[str]
):
    world = Running.on(nodes, queues)
    for text, queue, priority in waiting:
        world.submit(text, queue, priority)
    world.settle()
    assert world.evicted == []
    assert world.there() == there


def test_whoever_starts_is_told_once_nobody_more_has_to_leave():
    world = Running.on("s/l: a:8 b:8 c:8", {"a": {}, "b": gpus(8)})
    world.run("old: 2x8", "a")
    world.submit("high: 1x8", "a", "high")
    world.submit("other: 1x8", "b", "top")
    first, second = world.step(), world.step()
    assert [one.workload.name for one in first.evictions] == ["high"]
    assert (first.placements, first.more) == ([], True)
    assert {one.workload.name for one in second.placements} == {"high", "other"}


@pytest.mark.parametrize("gone", ["node", "pod", "nothing"])
def test_a_placement_is_reported_only_while_pods_and_nodes_exist(gone: str):
    world = Running.on("s/l: a:8 b:8 c:8", {"a": {}, "b": gpus(8)})
    world.run("old: 2x8", "a")
    world.submit("high: 1x8", "a", "high")
    world.submit("other: 1x8", "b", "top")
    assert [one.workload.name for one in world.step().evictions] == ["high"]
    place = world.cluster.pods["default", "other-0"].node
    if gone == "node":
        world.cluster.remove_node(place)
    elif gone == "pod":
        world.cluster.remove_pod("default", "other-0")
    told = {
        (one.member.name, one.spot.node)
        for placement in world.step().placements
        for one in placement.assignments
    }
    assert (("other-0", place) in told) == (gone == "nothing")


def test_a_start_is_delayed_by_at_most_a_second():
    placement = Placement(WorkloadKey("Gang", "default", "x"), ())
    starts = TentativePlacements(Cluster(), Timers())
    starts.hold(placement, 10.0)
    early, late = CycleResult(), CycleResult()
    starts.hand_out(early, 10.9, settled=False)
    starts.hand_out(late, 11.0, settled=False)
    assert (early.placements, early.more) == ([], True)
    assert (late.placements, late.more) == ([placement], False)
