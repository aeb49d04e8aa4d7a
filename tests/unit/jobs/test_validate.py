"""Variables that belong to a framework may not be set to something else."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.jobs import job, mpi_roles, role

from lockstep.jobs.validate import problems

FIRST = "spec.roles[0].template.spec.containers[0].env[0]"


@pytest.mark.parametrize(
    ("env", "framework"),
    [
        ({"WORLD_SIZE": "7"}, "pytorch"),
        ({"RANK": "3"}, "pytorch"),
        ({"MASTER_ADDR": "elsewhere"}, "pytorch"),
        ({"PET_NNODES": "9"}, "pytorch"),
        ({"LOCKSTEP_INDEX": "9"}, "plain"),
    ],
)
def test_a_contradiction_is_named(env: dict[str, str], framework: str) -> None:
    found = problems(job(role(env=env), framework=framework))
    (name, value) = next(iter(env.items()))
    assert [(p.field, p.given) for p in found] == [(FIRST, f"{name}={value}")]
    assert framework in found[0].allowed


def test_a_reserved_variable_from_elsewhere_is_a_contradiction() -> None:
    given = job(role(env={"RANK": ""}))
    source = {"configMapKeyRef": {"name": "c", "key": "k"}}
    given.spec.roles[0].template["spec"]["containers"][0]["env"] = [
        {"name": "RANK", "valueFrom": source}
    ]
    assert [p.given for p in problems(given)] == ["RANK=(from elsewhere)"]


@pytest.mark.parametrize(
    "given",
    [
        job(role(env={"WORLD_SIZE": "2", "NCCL_DEBUG": "INFO", "PYTHONUNBUFFERED": "0"})),
        job(role(env={"MASTER_PORT": "12345"})),
        job(role(gpus=8, env={"RANK": "mine"})),
        job(*mpi_roles(env={"LOCKSTEP_SSH_PORT": "22"}), framework="mpi"),
    ],
)
def test_what_is_free_or_says_the_same_is_no_problem(given: Any) -> None:
    assert problems(given) == []


@pytest.mark.parametrize("port", ["0", "65536", "http", ""])
def test_a_port_must_be_one(port: str) -> None:
    assert [p.given for p in problems(job(role(env={"MASTER_PORT": port})))] == [
        f"MASTER_PORT={port}"
    ]


def _affine(value: Any) -> Any:
    found = role()
    found["template"]["spec"]["affinity"] = {"nodeAffinity": value}
    return found


@pytest.mark.parametrize(
    ("given", "field", "words"),
    [
        (job(spot="AboveMin"), "spec.spot", "needs a role with fewer pods in min"),
        (
            job(role(min=1, replicas=2), role("worker-spot"), framework="plain", spot="AboveMin"),
            "spec.roles[0].name",
            "must not be beside a role worker-spot",
        ),
        (
            job(role(min=1, gpus=4), spot="AboveMin", parallelism={"tensor": 8}),
            "spec.parallelism.tensor",
            "must fit a pod of role worker (4 processes)",
        ),
        (
            job(_affine([]), spot="Never"),
            "spec.roles[0].template.spec.affinity",
            "must have nodeSelectorTerms",
        ),
    ],
)
def test_what_is_wrong_with_the_use_of_spot_is_named(given: Any, field: str, words: str) -> None:
    (found,) = problems(given)
    assert found.field == field
    assert words in found.allowed
