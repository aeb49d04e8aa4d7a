"""Launchers are asked once a rank may hang; the verdict comes when all have told."""

from __future__ import annotations

from typing import Any

from tests.support.job_world import FakeCluster
from tests.support.jobs import job

from lockstep.jobs import conditions as cond


def running() -> FakeCluster:
    world = FakeCluster(job())
    world.run()
    world.everybody("Ready")
    world.everybody("Running")
    return world


def figures(suspect: bool) -> list[dict[str, Any]]:
    return [{"local": 0, "steps": 9, "suspect": suspect}]


def waits(rank: int) -> list[dict[str, Any]]:
    work = {"group": "0", "seq": 2, "op": "all_reduce"}
    return [
        {
            "rank": rank,
            "answers": "all",
            "groups": [{"group": "0", "enqueued": 2, "completed": 1}],
            "waiting": [work],
        }
    ]


def test_a_hang_is_asked_after_told_and_forgotten() -> None:
    world = running()
    assert not world.world().asked
    world.report("digits-worker-0", "Running", ranks=figures(True))
    world.settle()
    assert world.world().asked

    world.report("digits-worker-0", "Running", ranks=figures(True), hang=waits(0))
    world.settle()
    assert world.job is not None
    assert world.job.status.diagnosis is None, "one of two has told"

    stopped = [{"rank": 1, "answers": "stopped"}]
    world.report("digits-worker-1", "Running", ranks=figures(True), hang=stopped)
    world.settle()
    verdict = world.job.status.diagnosis
    assert verdict is not None
    assert (verdict.class_, verdict.place.ranks) == ("platform", [1])
    assert verdict.place.nodes == ["node-1"]
    assert cond.holds(world.job.status, cond.HANGING)
    assert "Hanging" in world.told
    assert world.job.status.restarts == 0

    for name in ("digits-worker-0", "digits-worker-1"):
        world.report(name, "Running", ranks=figures(False))
    world.settle()
    assert not world.world().asked
    assert world.job.status.diagnosis is None
    assert not cond.holds(world.job.status, cond.HANGING)


def test_a_long_evaluation_is_no_hang_for_a_minute() -> None:
    world = running()
    still = [{"local": 0, "steps": 9, "suspect": True, "at": world.now - 8.0}]
    for rank, name in enumerate(("digits-worker-0", "digits-worker-1")):
        nothing = [{"rank": rank, "answers": "all", "at": "train.py:9 in evaluate"}]
        world.report(name, "Running", ranks=still, hang=nothing)
    world.settle()
    assert world.job is not None
    assert not cond.holds(world.job.status, cond.HANGING)
    world.now += 60.0
    world.settle()
    assert cond.holds(world.job.status, cond.HANGING)
    assert world.job.status.diagnosis is not None
    assert world.job.status.diagnosis.place.ranks == []
