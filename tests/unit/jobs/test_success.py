"""Whose success is the job's, and jobs whose pods have other numbers than 0, 1, 2."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.job_world import FakeCluster
from tests.support.jobs import job, role

from lockstep.jobs.frameworks.base import members
from lockstep.jobs.validate import problems

Json = dict[str, Any]
LEADS = role("leader", 1)
WORKS = role("worker", 4, identity={"name": "{job}-{role}-{block}-{member}", "block": 2})
CASES: dict[str, tuple[Json | None, set[str], bool]] = {
    "all pods by default": (None, {"leader-0", "worker-0-0"}, False),
    "the leader alone": ({"roles": ["leader"]}, {"leader-0"}, True),
    "not the workers": ({"roles": ["leader"]}, {"worker-0-0", "worker-0-1"}, False),
    "a whole block": ({"roles": ["worker"], "operator": "Any"}, {"worker-1-0", "worker-1-1"}, True),
    "parts of two": ({"roles": ["worker"], "operator": "Any"}, {"worker-0-0", "worker-1-1"}, False),
    "any of two roles": ({"roles": ["leader", "worker"], "operator": "Any"}, {"leader-0"}, True),
}


@pytest.mark.parametrize("words", CASES)
def test_those_decide_whom_it_names(words: str) -> None:
    policy, done, succeeded = CASES[words]
    world = FakeCluster(job(LEADS, WORKS, framework="plain", successPolicy=policy))
    world.settle()
    world.place()
    world.start()
    world.settle()
    for name in done:
        world.set(f"digits-{name}", "Succeeded")
    world.settle()
    assert world.job is not None
    assert (world.job.status.phase == "Succeeded") is succeeded


def test_a_role_that_is_not_there_cannot_decide() -> None:
    wrong = problems(job(LEADS, framework="plain", successPolicy={"roles": ["chief"]}))
    assert [(p.field, p.given) for p in wrong] == [("spec.successPolicy.roles", "chief")]


def test_indices_may_be_left_out() -> None:
    found = members(job(role(replicas=3, omit=[1, 2]), framework="plain"))
    assert [(m.index, m.rank) for m in found] == [(0, 0), (3, 1), (4, 2)]


def test_a_pod_lost_among_others_numbers_is_made_again() -> None:
    workers = role(replicas=2, omit=[0], min=1, max=3)
    world = FakeCluster(job(workers, framework="plain"))
    world.settle()
    world.place()
    world.start()
    world.settle()
    del world.pods["digits-worker-2"]
    world.settle()
    assert world.job is not None
    assert set(world.pods) == {"digits-worker-1", "digits-worker-2"}
    assert world.job.status.restarts == 1


def test_keys_are_given_on_request() -> None:
    world = FakeCluster(job(role(), framework="plain", ssh=True))
    world.settle()
    assert ("Secret", "digits-ssh") in world.objects
    world = FakeCluster(job(role(), framework="plain"))
    world.settle()
    assert ("Secret", "digits-ssh") not in world.objects
