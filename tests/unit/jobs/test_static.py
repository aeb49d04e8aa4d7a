"""What TensorFlow, JAX, XGBoost and Paddle are told, and whose success counts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.jobs import job, role

from lockstep.api.training import TrainingJob
from lockstep.jobs.frameworks import FRAMEWORKS
from lockstep.jobs.frameworks.base import members
from lockstep.jobs.objects import pod
from lockstep.jobs.validate import problems

PORT = {"env": {"MASTER_PORT": "9000"}}


def environment(given: TrainingJob, name: str) -> dict[str, str]:
    everyone = members(given)
    member = next(m for m in everyone if m.name == name)
    built = pod(given, FRAMEWORKS[given.spec.framework], member, everyone)
    return {v["name"]: v["value"] for v in built["spec"]["containers"][0]["env"]}


def test_tensorflow_knows_the_cluster_and_its_task() -> None:
    roles = [role("ps", 1), role("worker", 2), role("evaluator", 1)]
    given = job(*roles, framework="tensorflow")
    told = json.loads(environment(given, "digits-worker-1")["TF_CONFIG"])
    assert told["task"] == {"type": "worker", "index": 1}
    assert {type_: len(hosts) for type_, hosts in told["cluster"].items()} == {"ps": 1, "worker": 2}
    hosts = [host for group in told["cluster"].values() for host in group]
    assert hosts[0].startswith("digits-ps-0.digits:")
    assert len({host.partition(":")[2] for host in hosts}) == 3, "a port of its own for each"
    assert json.loads(environment(given, "digits-evaluator-0")["TF_CONFIG"])["task"] == {
        "type": "evaluator",
        "index": 0,
    }


def test_tensorflow_alone_is_told_nothing() -> None:
    assert "TF_CONFIG" not in environment(
        job(role(replicas=1), framework="tensorflow"), "digits-worker-0"
    )


TOLD: dict[str, dict[str, str]] = {
    "jax": {
        "JAX_COORDINATOR_ADDRESS": "digits-worker-0.digits:9000",
        "JAX_NUM_PROCESSES": "2",
        "JAX_PROCESS_ID": "1",
        "COORDINATOR_ADDRESS": "digits-worker-0.digits",
        "COORDINATOR_PORT": "9000",
        "NUM_PROCESSES": "2",
        "PROCESS_ID": "1",
    },
    "xgboost": {
        "DMLC_TRACKER_URI": "digits-worker-0.digits",
        "DMLC_TRACKER_PORT": "9000",
        "DMLC_TASK_ID": "1",
        "DMLC_NUM_WORKER": "2",
        "MASTER_ADDR": "digits-worker-0.digits",
        "WORLD_SIZE": "2",
        "RANK": "1",
        "WORKER_PORT": "9000",
        "WORKER_ADDRS": "digits-worker-0.digits,digits-worker-1.digits",
    },
    "paddle": {
        "PADDLE_JOB_ID": "digits",
        "PADDLE_MASTER": "digits-worker-0.digits:9000",
        "PADDLE_NNODES": "2",
        "PADDLE_SERVER_NUM": "0",
        "PADDLE_TRAINER_NUM": "1",
    },
}


@pytest.mark.parametrize("framework", TOLD)
def test_each_is_told_in_its_own_words(framework: str) -> None:
    given = environment(job(role(**PORT), framework=framework), "digits-worker-1")
    common = {"PYTHONUNBUFFERED": "1", "MASTER_PORT": "9000"}
    assert given == common | TOLD[framework]


DECIDING: list[tuple[list[str], list[str]]] = [
    (["chief", "worker", "ps"], ["chief"]),
    (["worker", "ps", "evaluator"], ["worker"]),
    (["worker"], ["worker"]),
]


@pytest.mark.parametrize(("roles", "deciding"), DECIDING)
def test_servers_and_evaluators_do_not_decide(roles: list[str], deciding: list[str]) -> None:
    given = job(*(role(name, 1) for name in roles), framework="tensorflow")
    found = FRAMEWORKS["tensorflow"].deciding(given)
    assert [member.role.name for member in found] == deciding


@pytest.mark.parametrize(
    ("roles", "field"),
    [
        ([role("boss", 1)], "spec.roles[0].name"),
        ([role(env={"MASTER_PORT": "many"})], "spec.roles"),
        ([role(env={"TF_CONFIG": "{}"})], "spec.roles[0].template.spec.containers[0].env[0]"),
    ],
)
def test_what_it_cannot_run_is_named(roles: list[Any], field: str) -> None:
    assert [p.field for p in problems(job(*roles, framework="tensorflow"))][:1] == [field]
