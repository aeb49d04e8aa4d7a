"""Kubeflow's other jobs: what their pods are called and told, and what is refused."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec import structs
from tests.support import jobs

from lockstep.api.core import AnyObject
from lockstep.api.training import TrainingJob
from lockstep.api.wire import convert
from lockstep.compat.registry import sources
from lockstep.jobs.frameworks import FRAMEWORKS
from lockstep.jobs.frameworks.base import members
from lockstep.jobs.objects import pod

Json = dict[str, Any]
SAMPLES = Path(__file__).parent / "samples"
BY_KIND = {s.kind.kind: s for s in sources() if s.kind.group == "kubeflow.org"}
PREFIX = "training.kubeflow.org/"


def sample(name: str, **change: Any) -> AnyObject:
    body = copy.deepcopy(yaml.safe_load((SAMPLES / f"{name}.yaml").read_text()))
    body["spec"] |= change
    return convert(body, AnyObject)


def pods(name: str) -> dict[str, Json]:
    obj = sample(name)
    (body,) = BY_KIND[obj.kind].to_native(obj).objects
    job = convert(body, TrainingJob)
    framework, everyone = FRAMEWORKS[job.spec.framework], members(job)
    return {one.name: pod(job, framework, one, everyone) for one in everyone}


def environment(one: Json) -> dict[str, str]:
    return {v["name"]: v.get("value", "") for v in one["spec"]["containers"][0]["env"]}


NAMES = {
    "tfjob": ["tf-chief-0", "tf-worker-0", "tf-worker-1", "tf-ps-0", "tf-evaluator-0"],
    "xgboostjob": ["xgboost-master-0", "xgboost-worker-0", "xgboost-worker-1"],
    "paddlejob": ["paddle-worker-0", "paddle-worker-1"],
    "jaxjob": ["jax-worker-0", "jax-worker-1"],
    "mpijob": ["mpi-launcher", "mpi-worker-0", "mpi-worker-1"],
}


@pytest.mark.parametrize("name", NAMES)
def test_pods_are_called_as_by_the_operator(name: str) -> None:
    found = pods(name)
    assert list(found) == NAMES[name]
    for pod_name, one in found.items():
        told = one["metadata"]["labels"]
        assert told[f"{PREFIX}job-name"] == name.removesuffix("job")
        assert told[f"{PREFIX}replica-index"] == (
            pod_name.rpartition("-")[2].strip("launcher") or "0"
        )


TOLD: list[tuple[str, str, Json]] = [
    (
        "xgboostjob",
        "xgboost-worker-1",
        {
            "MASTER_ADDR": "xgboost-master-0.xgboost",
            "MASTER_PORT": "9991",
            "WORLD_SIZE": "3",
            "RANK": "2",
            "WORKER_ADDRS": "xgboost-worker-0.xgboost,xgboost-worker-1.xgboost",
            "PYTHONUNBUFFERED": "1",
        },
    ),
    (
        "paddlejob",
        "paddle-worker-1",
        {
            "PADDLE_MASTER": "paddle-worker-0.paddle:37777",
            "PADDLE_NNODES": "2",
            "PADDLE_JOB_ID": "paddle",
            "PADDLE_SERVER_NUM": "0",
            "PADDLE_TRAINER_NUM": "1",
        },
    ),
    (
        "jaxjob",
        "jax-worker-1",
        {"COORDINATOR_ADDRESS": "jax-worker-0.jax", "NUM_PROCESSES": "2", "PROCESS_ID": "1"},
    ),
    (
        "mpijob",
        "mpi-launcher",
        {"K_MPI_JOB_ROLE": "launcher", "OMPI_MCA_orte_set_default_slots": "2"},
    ),
]


@pytest.mark.parametrize(("name", "pod_name", "wanted"), TOLD)
def test_a_pod_is_told_what_the_operator_tells(name: str, pod_name: str, wanted: Json) -> None:
    given = environment(pods(name)[pod_name])
    assert {key: given.get(key) for key in wanted} == wanted


def test_tensorflow_has_the_types_that_the_operator_tells() -> None:
    told = json.loads(environment(pods("tfjob")["tf-ps-0"])["TF_CONFIG"])
    assert told["task"] == {"type": "ps", "index": 0}
    assert sorted(told["cluster"]) == ["chief", "ps", "worker"]


BAD: list[tuple[str, Json, str]] = [
    ("tfjob", {"tfReplicaSpecs": {}}, "spec.tfReplicaSpecs"),
    ("tfjob", {"enableDynamicWorker": True}, "spec.enableDynamicWorker"),
    ("tfjob", {"tfReplicaSpecs": {"Boss": {"template": {}}}}, "spec.tfReplicaSpecs"),
    ("tfjob", {"slotsPerWorker": 2}, "spec.slotsPerWorker"),
    (
        "tfjob",
        {"tfReplicaSpecs": {"Worker": {"template": {}, "restartPolicy": "Sometimes"}}},
        "spec.tfReplicaSpecs[Worker].restartPolicy",
    ),
    (
        "jaxjob",
        {"jaxReplicaSpecs": {"Worker": {"template": {}, "x": 1}}},
        "spec.jaxReplicaSpecs[Worker].x",
    ),
    (
        "xgboostjob",
        {"xgbReplicaSpecs": {"Worker": {"template": {}}}},
        "spec.xgbReplicaSpecs[Master]",
    ),
    ("paddlejob", {"elasticPolicy": {}}, "spec.elasticPolicy"),
    ("mpijob", {"runLauncherAsWorker": True}, "spec.runLauncherAsWorker"),
    ("mpijob", {"mpiImplementation": "LAM"}, "spec.mpiImplementation"),
]


@pytest.mark.parametrize(("name", "change", "field"), BAD)
def test_what_cannot_be_honoured_is_named(name: str, change: Json, field: str) -> None:
    obj = sample(name, **change)
    found = BY_KIND[obj.kind].to_native(obj)
    assert found.objects == ()
    assert [problem.field for problem in found.refusals] == [field]


def test_the_types_of_replicas_are_written_as_the_operator_does() -> None:
    obj = sample("tfjob")
    (body,) = BY_KIND["TFJob"].to_native(obj).objects
    job = structs.replace(convert(body, TrainingJob), status=jobs.job().status)
    told = BY_KIND["TFJob"].status_of(obj, [job], ())["replicaStatuses"]
    assert sorted(told) == ["Chief", "Evaluator", "PS", "Worker"]


def test_a_tfjob_completes_with_its_chief_or_with_its_workers() -> None:
    chief = BY_KIND["TFJob"].to_native(sample("tfjob")).objects[0]["spec"]
    assert chief["successPolicy"] == {"roles": ["chief"]}
    every = BY_KIND["TFJob"].to_native(sample("tfjob", successPolicy="AllWorkers"))
    assert every.objects[0]["spec"]["successPolicy"] == {"roles": ["worker"]}


def test_keys_lie_where_an_mpijob_looks_for_them() -> None:
    path = "/home/mpiuser/.ssh"
    (body,) = BY_KIND["MPIJob"].to_native(sample("mpijob", sshAuthMountPath=path)).objects
    job = convert(body, TrainingJob)
    everyone = members(job)
    for one in everyone:
        spec = pod(job, FRAMEWORKS["mpi"], one, everyone)["spec"]
        for container in (*spec["containers"], *spec.get("initContainers", [])):
            assert {path, "/root/.ssh"} <= {m["mountPath"] for m in container["volumeMounts"]}
