"""An elastic gang of which pods still arrive is waited with for a moment, and others are not."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.support.running import Running

from lockstep.scheduler.core.cycle.timers import ARRIVAL
from lockstep.scheduler.core.model.workload import WorkloadKey

STARTED = 1_000_000.0
KEY = WorkloadKey("Gang", "default", "g")


def arriving(text: str, pods: int) -> Running:
    """A gang of which only the first pods are there yet; the clock stands."""
    world = Running.on("s/l: a:8 b:8 c:8 d:8")
    world.submit(text)
    for one in world.gangs["g"].pods[pods:]:
        world.cluster.remove_pod("default", one.metadata.name)
    world.now = STARTED
    return world


def come(world: Running, number: int) -> None:
    world.cluster.set_pod(world.gangs["g"].pods[number])


def placed(world: Running) -> int:
    return len(world.places("g"))


@pytest.mark.parametrize(
    ("text", "pods", "expected"),
    [
        pytest.param("g: 2..4x8", 2, 0, id="more may come"),
        pytest.param("g: 2..4x8", 4, 4, id="all are there"),
        pytest.param("g: 2x8", 2, 2, id="no more are wanted"),
        pytest.param("g: a=1x8 + b=1..2x8", 2, 0, id="more of one group may come"),
    ],
)
def test_which_gangs_are_waited_with(text: str, pods: int, expected: int):
    world = arriving(text, pods)
    result = world.step()
    assert placed(world) == expected
    assert result.wake_at == (None if expected else STARTED + ARRIVAL.seconds)


def test_each_pod_that_comes_lets_more_be_expected():
    world = arriving("g: 2..4x8", 2)
    world.step()
    world.now += 0.8 * ARRIVAL.seconds
    come(world, 2)
    assert world.step().wake_at == world.now + ARRIVAL.seconds
    world.now += 0.8 * ARRIVAL.seconds
    world.step()
    assert not placed(world)
    come(world, 3)
    world.step()
    assert placed(world) == 4


def test_it_starts_with_those_that_came_when_no_more_do():
    world = arriving("g: 2..4x8", 3)
    result = world.step()
    assert result.wake_at is not None
    world.now = result.wake_at
    world.step()
    assert placed(world) == 3


def test_what_stands_already_grows_at_once():
    world = arriving("g: 2..4x8", 2)
    world.step()
    world.now += ARRIVAL.seconds
    world.step()
    assert placed(world) == 2
    come(world, 2)
    world.step()
    assert placed(world) == 3


def test_others_are_not_kept_waiting_meanwhile():
    world = arriving("g: 2..4x8", 2)
    world.submit("other: 4x8")
    world.now = STARTED
    world.step()
    assert world.there() == {"other"}


def test_what_somebody_says_of_it_meanwhile_is_no_pod():
    world = arriving("g: 2..4x8", 2)
    due = world.step().wake_at
    world.now += 0.8 * ARRIVAL.seconds
    gang = world.cluster.workloads[KEY].gang
    assert gang is not None
    world.cluster.set_gang(replace(gang, status=replace(gang.status, position=1)))
    assert world.step().wake_at == due
