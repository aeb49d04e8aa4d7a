"""What is wrong with a job across its fields, named by field, given and allowed."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.jobs import job, mpi_roles, role

from lockstep.api.validation import problems

ENDS = {"restartPolicy": "Always"}


@pytest.mark.parametrize(
    ("given", "field", "allowed"),
    [
        (job(name="a.b"), "metadata.name", "letter"),
        (job(name="1st"), "metadata.name", "letter"),
        (job(name="x" * 60), "spec.roles[0].name", "shorter by 6"),
        (job(queue="a/b"), "spec.queue", "63"),
        (job(role(), role()), "spec.roles[1].name", "differ"),
        (job(role(replicas=2, min=3)), "spec.roles[0].min", "must not exceed replicas (2)"),
        (job(role(replicas=2, max=1)), "spec.roles[0].max", "must not be less than replicas (2)"),
        (job({"name": "w", "template": {}}), "spec.roles[0].template.spec", "containers"),
        (
            job({"name": "w", "template": {"spec": {"containers": []}}}),
            "spec.roles[0].template.spec.containers",
            "one container",
        ),
        (job(role(pod=ENDS)), "spec.roles[0].template.spec.restartPolicy", "Never or OnFailure"),
        (
            job(role(pod={"schedulerName": "default-scheduler"})),
            "spec.roles[0].template.spec.schedulerName",
            "lockstep",
        ),
        (job(role(pod={"nodeName": "n"})), "spec.roles[0].template.spec.nodeName", "scheduler's"),
        (
            job(role("ps", pod={"subdomain": "one"}), role(pod={"subdomain": "other"})),
            "spec.roles[1].template.spec.subdomain",
            "must be one in all roles",
        ),
        (job(role(pod={"hostname": "n"})), "spec.roles[0].template.spec.hostname", "pod's name"),
        (
            job(role(pod={"priorityClassName": "low"}), priorityClassName="high"),
            "spec.roles[0].template.spec.priorityClassName",
            "(high)",
        ),
        (job(role(gpus="many")), "spec.roles[0].template.spec.containers[0].resources", "quantity"),
        (job(framework="mpi"), "spec.roles", "launcher and worker"),
        (
            job(role("launcher", 2), role("worker", 2), framework="mpi"),
            "spec.roles[0].replicas",
            "must be 1",
        ),
        (job(parallelism={"tensor": 4}), "spec.parallelism", "2 (2 x 1), not to 4"),
        (job(parallelism={"data": 1}), "spec.parallelism", "world size 2 (2 x 1), not to 1"),
        (
            job(role(gpus=8), parallelism={"tensor": 8, "expert": 4}),
            "spec.parallelism.expert",
            "which 32 does not",
        ),
        (
            job(*mpi_roles(workers=3), framework="mpi", parallelism={"tensor": 2}),
            "spec.parallelism",
            "3 (3 x 1)",
        ),
    ],
)
def test_a_problem_names_the_field_and_what_is_allowed(
    given: Any, field: str, allowed: str
) -> None:
    found = problems(given)
    assert [p.field for p in found] == [field]
    assert allowed in found[0].allowed
    assert str(found[0]).startswith(field)


@pytest.mark.parametrize(
    "given",
    [
        job(),
        job(role(replicas=4, min=2, max=8)),
        job(role(pod={"restartPolicy": "OnFailure", "schedulerName": "lockstep"})),
        job(*mpi_roles(workers=3), framework="mpi"),
        job(role(gpus=8), parallelism={"tensor": 8, "pipeline": 2}),
        job(role(gpus=8), parallelism={"tensor": 4, "data": 4}),
        job(maxWait="2h", runPolicy={"activeDeadline": "1h30m", "timeToLive": "1d"}),
    ],
)
def test_a_job_that_can_run_has_no_problem(given: Any) -> None:
    assert problems(given) == []
