"""A gang that says how long it waits at most fails when it has, and its pods with it."""

from __future__ import annotations

import asyncio
import copy

import pytest
from msgspec.structs import replace
from tests.support.drawn import add, draw_gang
from tests.support.running import Running
from tests.support.simulated_jobs import job, simulate
from tests.support.waiting import eventually
from tests.support.written_statuses import World

from lockstep.api.names import MAX_WAIT_ANNOTATION
from lockstep.scheduler import status_writer as status_module
from lockstep.scheduler.core.cycle.max_wait import MAX_WAIT_EXCEEDED
from lockstep.scheduler.core.model.workload import WorkloadKey
from lockstep.scheduler.core.runtime.start_estimates import StartEstimates

TWO = "s/l: a:8 b:8"
LATER = 4e9
"""Long after statuses are written, by the clock."""
Y = WorkloadKey("Gang", "default", "y")


def waiting(text: str = "y: 1x8", **more: str) -> Running:
    world = Running.on(TWO)
    world.run("x: 2x8")
    world.run(text, maxWait="1h", **more)
    return world


def gave_up(world: Running) -> bool:
    world.settle()
    return Y in world.decider.broken


def shown(world: Running, **status: str) -> None:
    gang = world.cluster.workloads[Y].gang
    assert gang is not None
    world.cluster.set_gang(replace(gang, status=replace(gang.status, **status)))


@pytest.mark.parametrize(
    ("passed", "status", "expected"),
    [
        pytest.param(3000, {}, False, id="not yet"),
        pytest.param(3700, {}, True, id="since it was made"),
        pytest.param(
            3700, {"waiting_since": "1970-01-12T14:00:00Z"}, False, id="since it lost its place"
        ),
        pytest.param(3700, {"phase": "Running"}, False, id="not known yet that it lost its place"),
    ],
)
def test_when_it_gives_up(passed, status, expected):
    world = waiting()
    shown(world, **status)
    world.now += passed
    assert gave_up(world) == expected


def test_the_decider_asks_to_be_back_in_time():
    world = waiting()
    at = world.decider.decide(world.now).wake_at
    assert at == pytest.approx(world.now + 3600, abs=2)


def test_a_timed_out_gang_is_tried_no_more_without_reservations():
    world = Running.on(TWO)
    world.run("x: 1x8", annotations={"lockstep.dev/runtime": "9000"})
    world.run("y: 2x8", maxWait="1h")
    assert world.cluster.reservations.room is not None
    world.now += 3700
    assert gave_up(world)
    assert world.cluster.reservations.room is None
    world.end("x")
    world.settle()
    assert world.there() == set()
    world.cluster.set_pod(world.gangs["y"].pods[0])  # news of it change nothing
    world.settle()
    assert world.there() == set()


def test_one_that_lacks_pods_gives_up_too():
    world = Running.on(TWO)
    world.submit("y: 2x8", maxWait="1h")
    world.cluster.remove_pod("default", "y-1")
    world.settle()
    world.now += 3700
    assert gave_up(world)


def test_what_stands_never_gives_up():
    world = Running.on(TWO)
    world.run("y: 2x8", maxWait="1h")
    world.now += 3700
    assert not gave_up(world)


def test_what_gives_up_before_its_turn_has_no_estimate():
    world = Running.on(TWO)
    world.run("x: 2x8", annotations={"lockstep.dev/runtime": "9000"})
    world.run("y: 1x8", maxWait="1h")
    outlook = StartEstimates(world.decider, world.now)
    while outlook.advance():
        pass
    found = outlook.found[Y]
    assert found.at is None
    assert found.why.startswith("not placed within 1h (maxWait)")


@pytest.mark.parametrize(
    ("stated", "why"),
    [
        ("1h", "not placed within 1h (maxWait)"),
        ("3h", ""),
        ("soon", ""),
    ],
)
def test_a_gang_its_job_ends_frees_its_turn_without_estimate(stated, why):
    world = Running.on("s/l: a:8")
    runs = "lockstep.dev/runtime"
    world.run("x: 1x8", annotations={runs: "9000"})
    world.run("y: 1x8", annotations={runs: "100", MAX_WAIT_ANNOTATION: stated})
    world.run("z: 1x8", annotations={runs: "100"})
    outlook = StartEstimates(copy.deepcopy(world.decider), world.now)
    while outlook.advance():
        pass
    ends = world.now + 9000
    y, z = (outlook.found[WorkloadKey("Gang", "default", name)] for name in "yz")
    assert y.why.startswith(why)
    assert (y.at is None) == bool(why)
    assert z.at == pytest.approx(ends if why else ends + 100, abs=5)


def test_the_scheduler_does_not_give_up_gangs_their_job_ends():
    world = Running.on("s/l: a:8")
    world.run("x: 1x8")
    world.run("y: 1x8", annotations={MAX_WAIT_ANNOTATION: "1h"})
    world.now += 3700
    assert not gave_up(world)


def test_a_simulated_gang_gives_up_as_well():
    result = simulate("1x8", job("x", "1x8", runs=5000), job("y", "1x8", runs=5, maxWait="1h"))
    x, y = result.lives
    assert (x.ended, y.started) == (5000, None)
    assert y.waiting.startswith("not placed within 1h (maxWait)")


async def test_gang_and_pods_fail_and_stay_so(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(status_module, "PACE", 0.001)
    world = World("s/l: a:8-8", 0)
    drawn = draw_gang("y: 2x8", created="1970-01-01T00:00:00Z", maxWait="1h")
    add(world.cluster, drawn)
    for one in drawn.pods:
        world.server.shown["default", one.metadata.name] = one
    async with world.writing():
        world.writer.take(world.decider.decide(10.0))
        await eventually(lambda: "short" in world.gang("y").status.message)
        world.writer.take(world.decider.decide(LATER))
        await eventually(lambda: world.gang("y").status.phase == "Failed")
        await eventually(
            lambda: {p.status.phase for p in world.server.shown.values()} == {"Failed"}
        )
        assert not world.cluster.workloads[Y].open
        before = world.gang("y").status
        world.cluster.set_pod(drawn.pods[0])  # one that comes late fails with the others
        number = world.server.pods["y-0"]
        world.writer.take(world.decider.decide(LATER + 1))
        await eventually(lambda: world.server.pods["y-0"] > number)
        await asyncio.sleep(0)
    assert world.gang("y").status == before
    assert before.reason == MAX_WAIT_EXCEEDED
    assert before.message.startswith("not placed within 1h (maxWait); last: needs 2 pods x 8 GPUs")
    assert before.position is None
