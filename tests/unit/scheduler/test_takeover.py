"""A place that is being freed goes to the most important one of the queue that comes meanwhile."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.running import Running
from tests.unit.scheduler.test_queue_properties import NODES, Submit, check_state, rank, stories

TWO = "s/l: a:8 b:8"
GPU = "nvidia.com/gpu"


def vanish(world: Running) -> None:
    """Let everybody who has been told to go be gone, and wait again."""
    for member in list(world.cluster.pods.values()):
        if member.terminating:
            world.cluster.remove_pod(*member.key)
            world.cluster.set_pod(world._pod(member.name))


def nominated(world: Running) -> set[str]:
    return {one.unit.name for one in world.cluster.nominations}


# queues, what runs, who is nominated, who comes, and who is nominated then
CASES: dict[str, Any] = {
    "the more important takes it over": (
        {}, ("x: 2x8", "low"), ("y: 1x8", ""), ("z: 1x8", "high"), "z",
    ),
    "also where it needs more of what is freed": (
        {}, ("x: 2x8", "low"), ("y: 1x8", ""), ("z: 2x8", "high"), "z",
    ),
    "equals do not": ({}, ("x: 2x8", "low"), ("y: 2x8", ""), ("z: 2x8", ""), "y"),
    "nor does the less important": ({}, ("x: 2x8", "low"), ("y: 2x8", ""), ("z: 2x8", "low"), "y"),
    "not one that would be beyond the share that the other is within": (
        {"q": {"guaranteed": {GPU: 8}}, "r": {}}, ("x: 2x8", "low"), ("y: 1x8", ""),
        ("z: 2x8", "high"), "y",
    ),
    "one that is within it as well": (
        {"q": {"guaranteed": {GPU: 8}}, "r": {}}, ("x: 2x8", "low"), ("y: 1x8", ""),
        ("z: 1x8", "high"), "z",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_who_gets_the_place(case):
    queues, (runs, low), (first, middle), (second, high), expected = case
    world = Running.on(TWO, queues)
    world.graceful = True
    world.run(runs, "r" if queues else "q", low)
    world.run(first, "q", middle)
    assert nominated(world) == {"y"}
    victims = list(world.evicted)
    world.run(second, "q", high)
    assert expected in nominated(world)
    assert set(world.evicted) == set(victims), "nobody more goes"
    vanish(world)
    world.settle()
    assert expected in world.there()


def test_who_lost_it_waits_again_and_stands_when_there_is_room():
    world = Running.on(TWO)
    world.graceful = True
    world.run("x: 2x8", priority="low")
    world.run("y: 2x8")
    world.run("z: 2x8", priority="high")
    vanish(world)
    world.settle()
    assert world.there() == {"z"}
    world.end("z")
    world.settle()
    assert world.there() == {"y"}


@settings(max_examples=60, deadline=None)
@given(stories(), st.lists(st.booleans(), min_size=9, max_size=9))
def test_no_circles_when_places_are_taken_over(story, patience):
    """Between two moments at which nothing is being freed, the order of ADR 53 only rises."""
    queues, events = story
    world = Running.on(NODES, queues)
    world.graceful = True
    last = rank(world, queues)
    submitted = [event for event in events if isinstance(event, Submit)]
    for event, wait in zip(submitted, patience, strict=False):
        world.submit(event.text, event.queue, event.priority)
        world.step()
        if wait:
            continue  # the next one comes while places are being freed
        for _ in range(40):
            vanish(world)
            result = world.step()
            if not (result.placements or result.evictions or result.more or world.cluster.touched):
                break
        else:
            raise AssertionError(f"no end: {world.evicted}")
        assert not len(world.cluster.nominations)
        check_state(world, queues)
        now = rank(world, queues)
        assert now >= last
        last = now
