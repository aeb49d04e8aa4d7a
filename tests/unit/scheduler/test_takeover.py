"""A place that is being freed goes to the most important one of the queue that comes meanwhile."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.queue_properties import NODES, Submit, check_state, rank, stories
from tests.support.running import Running

from lockstep.scheduler.core.model.workload import WorkloadKey
from lockstep.scheduler.core.runtime.gang_status import gang_status

TWO = "s/l: a:8 b:8"
GPU = "nvidia.com/gpu"


def vanish(world: Running) -> None:
    """Let everybody who has been told to go be gone, and wait again."""
    for member in list(world.cluster.pods.values()):
        if member.terminating:
            world.cluster.remove_pod(*member.key)
            world.cluster.set_pod(world._pod(member.name))


def nominated(world: Running) -> set[str]:
    return {one.workload.name for one in world.cluster.nominations}


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


def test_the_loser_waits_again_and_is_placed_when_room_appears():
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


# nodes, queues, what runs, where y and z are to stand, and whose ends make that room
CRASHES: dict[str, Any] = {
    "the whole place": (
        "s/l: a:8 b:8 c:8", {}, {"x": "a", "v": "b", "other": "c"},
        {"y": ("2x8", "ab"), "z": ("2x8", "ab")}, ["x", "v"],
    ),
    "a part of it": (
        "s/l: a:8 b:8 c:8", {}, {"x": "a", "v": "b", "other": "c"},
        {"y": ("2x8", "ab"), "z": ("1x8", "b")}, ["x", "v"],
    ),
    "beside one that stays": (
        "s/l: a:8", {}, {"x": "a 4", "other": "a 4"},
        {"y": ("1x4", "a"), "z": ("1x4", "a")}, ["x"],
    ),
    "the room below a limit": (
        "s/l: a:8 b:8 c:8 d:8", {"q": {"limit": {GPU: 16}}}, {"x": "a", "other": "b"},
        {"y": ("1x8", "c"), "z": ("1x8", "d")}, ["x"],
    ),
}  # fmt: skip
WRITTEN = [["y"], ["y", "z"], ["z"]]


def crashed(case: Any, written: list[str], told: int, gone: int) -> Running:
    """Return what the next leader finds: who shows a place, and how far victims have ended."""
    drawing, queues, runs, takers, victims = case
    world = Running.on(drawing, queues)
    for name, where in runs.items():
        on, _, gpus = where.partition(" ")
        world.submit(f"{name}: 1x{gpus or 8}", "q", "" if name == "other" else "low")
        world.stand(name, [on])
    world.graceful = True
    for name in victims[:told]:
        world._leave(f"{name}-0")
    for name in victims[:gone]:
        world.renew(f"{name}-0")
    for name, (size, nodes) in takers.items():
        world.submit(f"{name}: {size}", "q", "high" if name == "z" else "")
        if name in written:
            world.show(name, nominated={f"{name}-{i}": on for i, on in enumerate(nodes)})
    return world


@pytest.mark.parametrize("written", WRITTEN, ids=lambda names: "+".join(names) or "nothing")
@pytest.mark.parametrize("case", CRASHES.values(), ids=CRASHES)
def test_the_more_important_gang_gets_the_place_whenever_leaders_end(case, written):
    victims = case[-1]
    for told in range(len(victims) + 1):
        for gone in range(told + 1):
            world = crashed(case, written, told, gone)
            world.settle()
            vanish(world)
            world.settle()
            assert "z" in world.there()
            if written == ["y"] and gone == len(victims):
                continue  # it was y's, and ready for it
            assert set(world.evicted) <= set(victims)
            assert "other" in world.there()
            assert "y" not in world.there()


@pytest.mark.parametrize("nodes", ["ab", "b"])
def test_half_a_gang_on_a_taken_place_gets_the_rest(nodes):
    world = Running.on(TWO)
    world.submit(f"y: {len(nodes)}x8")
    world.show("y", nominated={f"y-{i}": on for i, on in enumerate(nodes)})
    world.submit("z: 2x8", priority="high")
    world._bind(world.gangs["z"].pods[0], "a", 0xFF)
    world.settle()
    assert world.places("z") == {"z-0": "a", "z-1": "b"}


def test_the_former_holder_shows_a_place_until_its_owners_status():
    world = Running.on(TWO)
    world.graceful = True
    world.run("x: 2x8", priority="low")
    world.run("y: 1x8")
    world.show("y", nominated={"y-0": "a"})
    world.submit("z: 1x8", priority="high")
    (eviction,) = world.step().evictions
    y, z = (WorkloadKey("Gang", "default", name) for name in "yz")
    assert (eviction.workload, eviction.instead_of) == (z, (y,))

    def shown() -> Any:
        return gang_status(world.cluster, world.cluster.workloads[y], None, 1, "")["nominated"]

    assert shown() == {"y-0": "a"}
    world.cluster.nominations.get(z).instead_of = ()
    assert shown() == {"y-0": None}


@settings(max_examples=examples(60), deadline=None)
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
