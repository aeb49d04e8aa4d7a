"""Limits of time: waiting, running, staying."""

from __future__ import annotations

import pytest
from tests.support.job_world import FakeCluster
from tests.support.jobs import NOW, job

from lockstep.api.training import TrainingJobStatus


def status(world: FakeCluster) -> TrainingJobStatus:
    assert world.job is not None
    return world.job.status


def test_a_job_not_placed_in_time_fails_with_its_reason() -> None:
    world = FakeCluster(job(maxWait="2h"))
    world.settle()
    decision = world.reconcile()
    assert decision is not None
    assert decision.again == 7200
    world.now += 7199
    world.settle()
    assert status(world).phase == "Pending"
    world.now += 1
    world.settle()
    assert status(world).phase == "Failed"
    assert status(world).conditions[-1].reason == "MaxWaitExceeded"
    assert status(world).message == (
        "not placed within 2h (maxWait); last: waits for the scheduler to place 2 pods"
    )
    assert not world.pods
    assert ("Gang", "digits") not in world.objects


def test_the_wait_begins_again_with_a_resumed_job() -> None:
    world = FakeCluster(job(maxWait="1h", suspend=True))
    world.settle()
    world.now += 5000
    world.edit(suspend=False)
    world.settle()
    world.now += 3000
    world.settle()
    assert status(world).phase == "Pending"
    world.now += 600
    world.settle()
    assert status(world).phase == "Failed"


def test_a_placed_job_waits_no_more() -> None:
    world = FakeCluster(job(maxWait="1m"))
    world.run()
    world.now += 3600
    world.settle()
    assert status(world).phase == "Running"


def test_a_job_that_runs_too_long_fails() -> None:
    world = FakeCluster(job(runPolicy={"activeDeadline": "90s"}))
    world.settle()
    world.now += 1000
    world.run()
    assert status(world).phase == "Running"
    decision = world.reconcile()
    assert decision is not None
    assert decision.again == 90
    world.fail("digits-worker-0")
    world.run()
    world.now += 90
    world.settle()
    assert status(world).phase == "Failed"
    assert status(world).conditions[-1].reason == "DeadlineExceeded"
    assert not world.pods


def test_the_start_is_the_first_placement_and_stays() -> None:
    world = FakeCluster(job())
    world.settle()
    assert status(world).start_time is None
    world.now += 60
    world.run()
    first = status(world).start_time
    assert first is not None
    world.now += 60
    world.fail("digits-worker-0")
    world.run()
    assert status(world).start_time == first


@pytest.mark.parametrize(("ttl", "there"), [(None, True), ("1h", False)])
def test_a_job_is_deleted_after_its_time_to_live(ttl: str | None, there: bool) -> None:
    world = FakeCluster(job(runPolicy={"timeToLive": ttl} if ttl else {}))
    world.run()
    for name in world.pods:
        world.set(name, "Succeeded")
    world.settle()
    decision = world.reconcile()
    assert decision is not None
    assert decision.again == (3600 if ttl else None)
    world.now = NOW + 3599
    world.settle()
    assert world.job is not None
    world.now += 1
    world.reconcile()
    assert (world.job is not None) == there
