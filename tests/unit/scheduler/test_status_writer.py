"""Statuses are written once, at a pace, and again only when there is something new to say."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any, TypeVar

import pytest
from msgspec.structs import replace
from tests.support.drawn import add, draw_gang, node, pod
from tests.support.waiting import eventually
from tests.support.written_statuses import World

from lockstep.api.core import Pod
from lockstep.api.gang import Gang, GangStatus
from lockstep.api.timestamp import show
from lockstep.scheduler import status_plan
from lockstep.scheduler import status_writer as module
from lockstep.scheduler.binder import MOMENT, Batch
from lockstep.scheduler.core.model.decisions import Estimate, Verdict
from lockstep.scheduler.core.model.workload import Workload, WorkloadKey
from lockstep.scheduler.core.state.cluster import Cluster

T = TypeVar("T", Gang, Pod)


def at_version(obj: T, version: str) -> T:
    return replace(obj, metadata=replace(obj.metadata, resource_version=version))


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PACE", 0.001)


async def test_many_waiting_gangs_are_each_written_once():
    world = World("s/l: a:8-8", 400)
    world.decide()
    async with world.writing():
        await eventually(lambda: len(world.server.gangs) == 400 and len(world.server.pods) == 800)
        assert world.gang("g399").status.position == 400
        assert "2 pods (16 GPUs) short" in world.gang("g7").status.message
        world.decide()  # it sees its own writes, and has nothing to add
        await eventually(lambda: not world.writer.behind)
    assert set(world.server.gangs.values()) == {1}
    assert set(world.server.pods.values()) == {1}
    assert Counter(reason for _, reason in world.server.events) == {"FailedScheduling": 400}


async def test_positions_follow_when_those_before_are_placed():
    world = World("s/l: a:8-8", 30)
    world.decide()
    async with world.writing():
        await eventually(lambda: world.gang("g29").status.position == 30)
        for name in ("b", "c"):
            world.cluster.set_node(node(name, labels={"spine": "s", "leaf": "l"}))
        world.decide()
        await eventually(lambda: world.gang("g29").status.position == 29)
    assert world.gang("g0").status.position is None


async def test_anothers_change_is_read_before_the_status_is_rewritten():
    world = World("s/l: a:8-8", 1)
    world.cluster.set_gang(at_version(world.gang("g0"), "5"))
    world.cluster.set_pod(at_version(world.server.shown["default", "g0-0"], "6"))
    world.server.versions = {"g0": "7", "g0-0": "8"}
    world.decide()
    async with world.writing():
        await eventually(lambda: {"g0", "g0-0"} <= set(world.server.refused))
        assert not world.server.gangs
        # What a late writer would have said is not what the newer one has made of it.
        gang = at_version(world.gang("g0"), "7")
        world.cluster.set_gang(replace(gang, status=replace(gang.status, position=9)))
        world.cluster.set_pod(at_version(world.server.shown["default", "g0-0"], "8"))
        del world.server.versions["g0"]  # from here on it moves with each write
        await eventually(lambda: world.gang("g0").status.position == 1)
        await eventually(lambda: world.words("g0-0"))


async def test_what_could_not_be_written_is_written_later():
    world = World("s/l: a:8-8", 1)
    world.server.failures = 4
    world.decide()
    async with world.writing():
        await eventually(lambda: world.gang("g0").status.message and len(world.server.pods) == 2)


async def test_a_single_pod_says_why_by_condition_and_event():
    world = World("s/l: a:8-8", 0)
    one = pod("p", gpus=1)
    world.server.shown["default", "p"] = one
    world.cluster.set_pod(one)
    world.decide()
    async with world.writing():
        await eventually(lambda: world.server.events)
        await eventually(lambda: world.server.shown["default", "p"].status.conditions)
    assert world.server.events == [("p", "FailedScheduling")]
    (condition,) = world.server.shown["default", "p"].status.conditions
    assert condition.reason == "Unschedulable"


async def test_a_single_pod_drops_its_place_once_another_has_it():
    world = World("s/l: a:8-8", 0)
    for name, priority in (("p", 0), ("kept", 5)):
        one = pod(name, gpus=8, priority=priority)
        one = replace(one, status=replace(one.status, nominated_node_name="a"))
        world.server.shown["default", name] = one
        world.cluster.set_pod(one)
    world.decide()  # of two whose place it cannot be both, the less important one goes on waiting
    async with world.writing():
        await eventually(lambda: world.server.shown["default", "p"].status.conditions)
    assert world.server.shown["default", "p"].status.nominated_node_name == ""
    assert world.server.shown["default", "kept"].status.nominated_node_name == "a"


async def test_a_newer_place_survives_the_removal_of_an_older_one():
    world = World("s/l: a:8-8", 0)
    for name, priority in (("p", 0), ("kept", 5)):
        one = at_version(pod(name, gpus=8, priority=priority), "5")
        one = replace(one, status=replace(one.status, nominated_node_name="a"))
        world.server.shown["default", name] = one
        world.cluster.set_pod(one)
    world.decide()
    newer = replace(one.status, nominated_node_name="b")
    world.server.shown["default", "p"] = replace(world.server.shown["default", "p"], status=newer)
    world.server.versions = {"p": "6"}
    async with world.writing():
        await eventually(lambda: "p" in world.server.refused)
    assert world.server.shown["default", "p"].status.nominated_node_name == "b"


async def test_a_gang_that_cannot_be_decided_about_says_so(monkeypatch: pytest.MonkeyPatch):
    world = World("s/l: a:8 b:8", 2)
    problem = world.decider.problem

    def stumble(workload: Workload) -> Any:
        if workload.key.name == "g0":
            raise ZeroDivisionError("no nodes")
        return problem(workload)

    monkeypatch.setattr(world.decider, "problem", stumble)
    world.decide()
    async with world.writing():
        await eventually(lambda: world.gang("g0").status.reason == "InternalError")
        assert "ZeroDivisionError: no nodes" in world.gang("g0").status.message
        await eventually(lambda: world.gang("g1").status.phase == "Placing")
        await eventually(lambda: "report it" in world.words("g0-0"))


async def test_an_unexplainable_gang_does_not_silence_the_others(
    monkeypatch: pytest.MonkeyPatch,
):
    world = World("s/l: a:8-8", 2)

    def stumble(_: Cluster, workload: Workload) -> Any:
        if workload.key.name == "g0":
            raise ZeroDivisionError("no words")
        return Verdict("NotEnoughRoom", "short")

    monkeypatch.setattr(status_plan, "explain", stumble)
    monkeypatch.setattr(world.decider, "problem", lambda workload: None)
    world.decide()
    async with world.writing():
        await eventually(lambda: world.gang("g0").status.reason == "InternalError")
        await eventually(lambda: world.gang("g1").status.reason == "NotEnoughRoom")
        assert "no words" in world.gang("g0").status.message


async def test_a_gang_that_cannot_be_read_says_so():
    world = World("s/l: a:8", 1)
    async with world.writing():
        world.writer.cannot_read(world.gang("g0"), ValueError("odd"))
        await eventually(lambda: "ValueError: odd" in world.gang("g0").status.message)
        assert world.gang("g0").status.reason == "InternalError"
        assert ("g0", "InternalError") in world.server.events


async def test_a_field_the_server_drops_is_not_rewritten_endlessly():
    world = World("s/l: a:8-8", 1)
    world.server.unknown = {"remedy"}
    world.decide()
    async with world.writing():
        await eventually(lambda: world.gang("g0").status.reason == "NotEnoughRoom")
        for _ in range(20):
            world.decide()
            await eventually(lambda: not world.writer.behind)
    assert world.server.gangs["g0"] <= 3


@pytest.mark.parametrize("ended", [True, False], ids=["they end", "they take long"])
async def test_a_gang_with_fresh_bindings_is_written_once_these_end(
    ended: bool,
) -> None:
    world = World("s/l: a:8-8", 1)
    world.decide()
    batch = world.binder.busy[world.gang_key("g0")] = Batch(world.gang_key("g0"), 2)
    batch.since = asyncio.get_running_loop().time()
    async with world.writing():
        for _ in range(20):
            await asyncio.sleep(0.002)  # many times the pace at which it would be written
            assert not world.server.gangs
        if ended:
            world.binder.busy.clear()
        else:
            batch.since -= MOMENT
        await eventually(lambda: world.server.gangs["g0"])


async def test_messages_about_a_reserved_place_name_its_gang():
    world = World("s/l: a:8 b:8", 0)
    for number, text in enumerate(("x: 2x8", "y: 2x8", "z: 2x8")):
        drawn = draw_gang(text, created=f"2026-01-01T00:00:0{number}Z")
        drawn.gang.metadata.annotations["lockstep.dev/runtime"] = "600"
        add(world.cluster, drawn)
    world.decide()
    async with world.writing():
        await eventually(lambda: world.gang("z").status.message and world.gang("y").status.message)
    assert "its place is kept" in world.gang("y").status.message
    assert "its place is kept" not in world.gang("z").status.message
    assert "room is kept for gang y" in world.gang("z").status.message


async def test_the_start_time_is_written_once_despite_tiny_changes():
    world = World("s/l: a:8-8", 2)
    world.decide()
    first, second = world.gang_key("g0"), world.gang_key("g1")
    async with world.writing():
        await eventually(lambda: not world.writer.behind)
        told = {first: Estimate(5000.0), second: Estimate(None, "gang g0 has no expected run time")}
        world.writer.foresee(told, 1000.0)
        await eventually(lambda: world.gang("g1").status.no_estimate)
        await eventually(lambda: world.gang("g0").status.estimated_start)
        before = Counter(world.server.gangs)
        world.writer.foresee(told | {first: Estimate(5010.0)}, 2000.0)
        assert not world.writer.behind
        world.writer.foresee({first: Estimate(9000.0), second: Estimate(9500.0)}, 3000.0)
        await eventually(lambda: world.gang("g1").status.estimated_start)
    status = world.gang("g0").status
    assert (status.estimated_start, status.estimated_at) == (
        "1970-01-01T02:30:00Z",
        "1970-01-01T00:50:00Z",
    )
    assert world.gang("g1").status.no_estimate == ""
    assert world.server.gangs == before + Counter(g0=1, g1=1)


async def test_a_gangs_findings_are_not_told_of_its_next_namesake():
    world = World("s/l: a:8-8", 1)
    world.decide()
    key, first = world.gang_key("g0"), world.gang("g0")
    async with world.writing():
        world.writer.foresee({key: Estimate(5000.0)}, 1000.0)
        await eventually(lambda: world.gang("g0").status.estimated_start)
        world.cluster.remove_gang("default", "g0")
        second = replace(first, metadata=replace(first.metadata, uid="another"))
        world.cluster.set_gang(replace(second, status=GangStatus()))
        world.decide()
        await eventually(lambda: world.gang("g0").status.message)
        assert world.gang("g0").status.estimated_start is None
        world.writer.foresee({key: Estimate(7000.0)}, 2000.0)
        await eventually(lambda: world.gang("g0").status.estimated_start == show(7000.0))


async def test_a_single_pods_start_time_is_written_once():
    world = World("s/l: a:8-8", 0)
    for name in ("p", "q"):
        world.server.shown["default", name] = pod(name, gpus=1)
        world.cluster.set_pod(world.server.shown["default", name])
    world.decide()
    first, second = (WorkloadKey("Pod", "default", name) for name in "pq")
    async with world.writing():
        await eventually(lambda: world.words("p") and world.words("q"))
        why = world.words("p")
        told = {first: Estimate(5000.0), second: Estimate(None, "pod p has no expected run time")}
        world.writer.foresee(told, 1000.0)
        await eventually(lambda: world.words("p") == f"{why}; estimated start: {show(5000.0)}")
        await eventually(
            lambda: world.words("q") == f"{why}; no estimated start: pod p has no expected run time"
        )
        world.writer.foresee(told | {first: Estimate(5010.0)}, 1000.0)
        assert not world.writer.behind
        world.decide()  # nor does it lose what it said when something else is looked at
        await eventually(lambda: not world.writer.behind)
        world.writer.foresee({first: Estimate(9000.0), second: Estimate(9500.0)}, 3000.0)
        await eventually(lambda: show(9500.0) in world.words("q"))
        await eventually(lambda: show(9000.0) in world.words("p"))
    assert world.server.pods == Counter(p=3, q=3)
    assert Counter(world.server.events) == {
        ("p", "FailedScheduling"): 1,
        ("q", "FailedScheduling"): 1,
    }


async def test_many_single_pods_get_start_times_once_at_a_pace():
    world = World("s/l: a:8-8", 0)
    names = [f"p{i}" for i in range(300)]
    for name in names:
        world.server.shown["default", name] = pod(name, gpus=1)
        world.cluster.set_pod(world.server.shown["default", name])
    world.decide()
    async with world.writing():
        await eventually(lambda: len(world.server.pods) == len(names))
        told = {WorkloadKey("Pod", "default", name): Estimate(5000.0) for name in names}
        for _ in range(3):
            world.writer.foresee(told, 1000.0)
        await eventually(lambda: all(show(5000.0) in world.words(name) for name in names))
        world.writer.foresee(told, 1000.0)
        assert not world.writer.behind
    assert set(world.server.pods.values()) == {2}
