"""A job's time is put to what it went to."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.job_world import FakeCluster
from tests.support.jobs import job, role

from lockstep.api.goodput import Goodput, in_words, spent

PODS = ("digits-worker-0", "digits-worker-1")


def ranks(steps: int, **more: Any) -> list[dict[str, Any]]:
    return [{"local": 0, "steps": steps, **more}]


def goodput(world: FakeCluster) -> Goodput:
    assert world.job is not None
    return world.job.status.goodput


def tell(world: FakeCluster, state: str = "Running", **report: Any) -> str:
    """Let all launchers report; return what the job's time goes to then."""
    for name in PODS:
        world.report(name, state, **report)
    world.settle()
    return goodput(world).cause


def training() -> FakeCluster:
    world = FakeCluster(job(role(), checkpoint={"directory": "/kept"}))
    world.run()
    tell(world, "Ready")
    assert tell(world, ranks=ranks(0)) == "starting"
    assert tell(world, ranks=ranks(5), step=5) == "productive"
    return world


def test_a_job_waits_starts_and_steps() -> None:
    world = FakeCluster(job())
    world.settle()
    assert goodput(world).cause == "waiting"
    world.now += 60
    world.run()
    assert goodput(world).cause == "starting"
    assert spent(goodput(world), world.now)["waiting"] >= 60


def test_steps_that_are_done_again_do_not_count() -> None:
    world = training()
    world.now += 100
    for name in PODS:
        world.report(name, "Running", ranks=ranks(8), step=8)
    world.report(PODS[1], "Failed", step=8, ended={"rank": 1, "at": 5.0, "signal": 9})
    world.settle()
    assert (goodput(world).cause, goodput(world).step) == ("starting", 8)
    tell(world, "Ready", snapshots=[{"local": 0, "step": 6}])
    assert tell(world, ranks=ranks(0), step=6) == "restoring"
    assert tell(world, ranks=ranks(1), step=7) == "recomputing"
    assert tell(world, ranks=ranks(2), step=8) == "productive"
    assert goodput(world).seconds["productive"] >= 100


def test_time_while_a_rank_may_hang_is_told_apart() -> None:
    world = training()
    assert tell(world, ranks=ranks(5, suspect=True), step=5) == "hung"


def test_a_suspended_job_spends_no_time() -> None:
    world = training()
    world.edit(suspend=True)
    world.settle()
    before = goodput(world).seconds
    world.now += 1000
    assert (goodput(world).cause, spent(goodput(world), world.now)) == ("", before)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        ({}, ""),
        ({"productive": 50.0}, "100 %"),
        ({"productive": 90.0, "waiting": 2.0, "hung": 8.0}, "90 % (hung 8 %, waiting 2 %)"),
        ({"waiting": 5.0}, "0 % (waiting 100 %)"),
    ],
)
def test_shares_in_words(seconds: dict[str, float], words: str) -> None:
    assert in_words(Goodput(seconds=seconds), 0.0) == words
