"""Whoever has made room is waited for until it is back in line, for a second at most."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.support.running import Running

from lockstep.api.gang import TopologyWish
from lockstep.scheduler.core.cycle.requeue_wait import RequeueWait
from lockstep.scheduler.core.cycle.timers import REQUEUE, Timers
from lockstep.scheduler.core.model.decisions import Eviction
from lockstep.scheduler.core.model.workload import WorkloadKey
from lockstep.scheduler.core.preemption.nominated_placement import VICTIM_SECONDS

KEY = WorkloadKey("Gang", "default", "y")


def evicted() -> Running:
    """Return a cluster where ``early`` makes room for ``high``, and ``late`` stands behind it."""
    world = Running.on("s/l: a:8 b:8 c:8-8 d:8-8")
    world.graceful = True
    world.run("early: 2x8", priority="low")
    world.submit("late: 1x8", priority="low")
    world.run("high: 1x8", priority="high")
    assert world.evicted == ["early"]
    return world


def displaced(drawing: str, size: str) -> Running:
    """Return a cluster where ``x`` and ``y`` make room for ``p`` and ``q`` of the same size."""
    world = Running.on(drawing)
    world.graceful = True
    for name in "xy":
        world.run(f"{name}: {size}", priority="low")
    for name in "pq":
        world.submit(f"{name}: {size}", priority="high")
    world.settle()
    return world


def free(world: Running, *nodes: str) -> None:
    for node in nodes:
        world.cluster.remove_pod("default", f"hold-{node}")
    world.settle()


def test_who_stands_behind_does_not_pass_whoever_comes_back():
    world = evicted()
    free(world, "c")
    assert world.there() == set()
    world.end("early", again=True)
    world.settle()
    assert world.there() == {"high", "early"}


@pytest.mark.parametrize("what", ["it takes too long", "its job is gone"])
def test_nobody_waits_for_whoever_does_not_come_back(what: str):
    world = evicted()
    free(world, "c", "d")
    assert world.there() == set()
    if what == "its job is gone":
        world.end("early")
    else:
        world.now += REQUEUE.seconds
    world.settle()
    assert world.there() == {"high", "late"}


def test_a_waiting_round_asks_to_return_when_the_wait_ends():
    world = evicted()
    result = world.step()
    assert (result.more, result.wake_at) == (False, world.now + REQUEUE.seconds)


def test_nobody_waits_for_pods_that_nobody_makes_again():
    world = Running.on("s/l: a:8 b:8-8")
    world.graceful = True
    world.run("bare: 1x8", priority="low", owned=False)
    world.submit("late: 1x8", priority="low")
    world.run("high: 1x8", priority="high")
    free(world, "b")
    assert world.there() == {"late"}


def test_repeatedly_leaving_gangs_are_waited_for_one_second_in_all():
    world = Running.on("s/l: a:8")
    world.run("x: 1x8")
    returning = RequeueWait(world.cluster, Timers())
    leaves = [Eviction(KEY, {}, (world.cluster.pods["default", "x-0"],), "")]
    returning.expect(leaves, 10.0)
    assert returning.until(10.5) == 11.0
    returning.expect(leaves, 10.8)
    assert returning.until(10.9) == 11.0
    assert returning.until(11.0) is None
    returning.expect(leaves, 11.2)
    assert returning.until(11.3) is None, "nothing has settled since the last second was over"
    returning.expect([], 11.4)
    returning.expect(leaves, 11.5)
    assert returning.until(11.6) == 12.5


@pytest.mark.parametrize("comes_back", [True, False])
def test_a_start_waits_for_returning_gangs_that_may_claim_it(comes_back: bool):
    world = displaced("s/l: a:8 b:8", "1x8")
    world.end("x", again=True)
    result = world.step()
    assert (result.placements, result.more) == ([], False)
    assert result.wake_at is not None
    if comes_back:
        world.end("y", again=True)
        world.settle()
        assert world.there() == {"p", "q"}
    else:
        world.now = result.wake_at
        world.settle()
        assert len(world.there()) == 1


def test_units_stand_where_it_was_planned_whoever_leaves_first():
    found = []
    for order in ("xy", "yx"):
        world = displaced("s/l: a:8", "1x4")
        for name in order:
            world.end(name)
            world.settle()
        pods = world.cluster.pods
        found.append({name: pods["default", f"{name}-0"].gpus for name in "pq"})
    assert found[0] == found[1]
    assert sorted(found[0].values()) == [0x0F, 0xF0]


def test_what_a_unit_asks_for_since_it_was_planned_counts():
    world = Running.on("s/l: a:8\ns/m: b:8")
    world.graceful = True
    for name in "xy":
        world.run(f"{name}: 1x8", priority="low")
    world.run("p: 2x8", priority="high")
    known = world.gangs["p"].gang
    spec = replace(known.spec, topology=TopologyWish(required="leaf"))
    world.cluster.set_gang(replace(known, spec=spec))
    for name in "xy":
        world.end(name)
        world.settle()
    assert world.there() == set(), "no leaf holds it"


def test_a_place_elsewhere_is_taken_when_victims_take_too_long():
    world = evicted()
    free(world, "c")
    world.now += VICTIM_SECONDS
    world.settle()
    assert world.places("high") == {"high-0": "c"}
