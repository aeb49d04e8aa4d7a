"""A job that does not run says why in its status."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs
from tests.support.job_world import FakeCluster
from tests.support.jobs import job

from lockstep.api.core import PodStatus
from lockstep.api.gang import GangStatus
from lockstep.api.meta import Condition
from lockstep.api.training import TrainingJobStatus
from lockstep.api.wire import convert
from lockstep.jobs.decide import RETRY_REFUSED, decide


def said(world: FakeCluster, **more: Any) -> TrainingJobStatus:
    return decide(replace(world.seen(), **more), world.now).status


def placed() -> FakeCluster:
    world = FakeCluster(job())
    world.settle()
    world.place()
    world.settle()
    return world


def waiting(world: FakeCluster, name: str, **state: str) -> None:
    tree = {"containerStatuses": [{"name": "main", "state": {"waiting": state}}]}
    world.pods[name] = structs.replace(world.pods[name], status=convert(tree, PodStatus))


def test_a_waiting_gangs_reason_is_the_jobs() -> None:
    world = FakeCluster(job())
    world.settle()
    gang = world.objects["Gang", "digits"]
    why = "8 nodes under one leaf are needed, the largest leaf has 6 free"
    world.objects["Gang", "digits"] = structs.replace(gang, status=GangStatus(message=why))
    assert said(world).message == why
    assert said(world).phase == "Pending"


def test_without_a_gangs_reason_the_pods_own_is_told() -> None:
    world = FakeCluster(job())
    world.settle()
    unscheduled = {"type": "PodScheduled", "status": "False", "message": "no node fits"}
    world.set("digits-worker-1", "Pending", conditions=[convert(unscheduled, Condition)])
    assert said(world).message == "digits-worker-1: no node fits"


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (
            {"reason": "CreateContainerConfigError", "message": 'configmap "x" not found'},
            'digits-worker-1: CreateContainerConfigError: configmap "x" not found',
        ),
        ({"reason": "ImagePullBackOff"}, "digits-worker-1: ImagePullBackOff"),
        (
            {"reason": "ContainerCreating"},
            "waits for digits-worker-0, digits-worker-1 to start",
        ),
    ],
)
def test_what_a_placed_pod_waits_for_is_told(state: dict[str, str], expected: str) -> None:
    world = placed()
    waiting(world, "digits-worker-1", **state)
    assert said(world).message == expected
    assert said(world).phase == "Starting"


def test_events_explain_a_pod_that_reports_nothing_itself() -> None:
    world = placed()
    warnings = {"digits-worker-0": "FailedMount: secret not found"}
    assert said(world, warnings=warnings).message == (
        "digits-worker-0: FailedMount: secret not found"
    )


def test_what_the_server_refused_is_told_and_tried_again() -> None:
    world = FakeCluster(job())
    refusals = ("Pod digits-worker-0 was refused: spec.x: Invalid", "Pod digits-worker-1 was ...")
    decision = decide(replace(world.seen(), refusals=refusals), world.now)
    assert decision.status.message == f"{refusals[0]} (and 1 more)"
    assert decision.again == RETRY_REFUSED
    created = decision.status.conditions[0]
    assert (created.type, created.status, created.reason) == ("Created", "False", "Refused")
    assert [note.reason for note in decision.notes] == ["Refused"]
    assert decision.actions


def test_pods_of_a_namesake_are_waited_for() -> None:
    world = FakeCluster(job())
    world.settle()
    old = world.pods.pop("digits-worker-0")
    owner = structs.replace(old.metadata.owner_references[0], uid="another")
    meta = structs.replace(old.metadata, owner_references=[owner])
    world.pods["digits-worker-0"] = structs.replace(old, metadata=meta)
    decision = decide(world.seen(), world.now)
    assert decision.status.message == ("waits for digits-worker-0 of another owner to be deleted")
    assert decision.actions == ()


def test_a_senseless_spec_changes_only_the_message() -> None:
    world = FakeCluster(job())
    world.run()
    world.edit(parallelism={"tensor": 5})
    before = dict(world.pods)
    world.settle()
    assert world.pods == before
    assert world.job is not None
    assert world.job.status.phase == "Running"
    assert world.job.status.message.startswith("spec.parallelism: given 'tensor 5'; ")
    world.edit(parallelism={"tensor": 1})
    world.settle()
    assert world.job.status.message == ""
    assert world.job.status.conditions[0].status == "True"
