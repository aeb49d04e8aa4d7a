"""Frameworks that bring a cluster along, those of torchrun's family, and parameter servers."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest
from tests.support.jobs import job, mpi_roles, role

from lockstep.api.roles import launched, ranked
from lockstep.api.training import TrainingJob
from lockstep.jobs.frameworks import FRAMEWORKS
from lockstep.jobs.frameworks.base import logs_in, members
from lockstep.jobs.objects import pod
from lockstep.jobs.validate import problems

PARTS = {
    "ray": ("head", "worker"),
    "spark": ("master", "worker"),
    "flink": ("jobmanager", "taskmanager"),
    "trino": ("coordinator", "worker"),
}
TOLD = {
    "ray": "RAY_ADDRESS",
    "spark": "SPARK_MASTER",
    "flink": "JOB_MANAGER_RPC_ADDRESS",
    "trino": "TRINO_SERVER",
}


def cluster(framework: str, *more: Any) -> TrainingJob:
    head, worker = PARTS[framework]
    roles = [role(head, 1, command=None), role(worker, 2, command=None), *more]
    return job(*roles, framework=framework)


def spec_of(given: TrainingJob, name: str) -> dict[str, Any]:
    everyone = members(given)
    member = next(m for m in everyone if m.name == name)
    found: dict[str, Any] = pod(given, FRAMEWORKS[given.spec.framework], member, everyone)["spec"]
    return found


def environment(given: TrainingJob, name: str) -> dict[str, str]:
    main = spec_of(given, name)["containers"][0]
    return {v["name"]: v.get("value", "") for v in main["env"]}


@pytest.mark.parametrize("framework", PARTS)
def test_every_member_is_told_where_the_head_is(framework: str) -> None:
    head, worker = PARTS[framework]
    given = cluster(framework, role("driver", 1))
    for name in (f"digits-{head}-0", f"digits-{worker}-1", "digits-driver-0"):
        assert f"digits-{head}-0.digits" in environment(given, name)[TOLD[framework]]


@pytest.mark.parametrize("framework", PARTS)
def test_pods_without_a_command_run_their_part(framework: str) -> None:
    head, worker = PARTS[framework]
    given = cluster(framework)
    for name in (f"digits-{head}-0", f"digits-{worker}-0"):
        command = spec_of(given, name)["containers"][0]["command"]
        assert command[:2] == ["/bin/sh", "-c"]
        subprocess.run(["/bin/sh", "-n"], input=command[2], text=True, check=True)


def test_a_command_of_ones_own_stays() -> None:
    given = job(role("head", 1, command=["ray", "start"]), role(), framework="ray")
    assert spec_of(given, "digits-head-0")["containers"][0]["command"] == ["ray", "start"]


def test_rays_driver_waits_for_the_head() -> None:
    spec = spec_of(cluster("ray", role("driver", 1)), "digits-driver-0")
    assert [c["name"] for c in spec["initContainers"]] == ["wait-for-head"]


def test_the_driver_decides_and_workers_may_be_replaced() -> None:
    framework, given = FRAMEWORKS["spark"], cluster("spark", role("driver", 1))
    assert [m.name for m in framework.deciding(given)] == ["digits-driver-0"]
    assert [m.name for m in framework.deciding(cluster("spark"))] == ["digits-master-0"]
    assert framework.replaceable(given) == {"digits-worker-0", "digits-worker-1"}


def test_trino_finds_its_configuration() -> None:
    given = cluster("trino")
    files = FRAMEWORKS["trino"].files(given, frozenset())
    assert "coordinator=true" in files["coordinator.properties"]
    mounts = spec_of(given, "digits-worker-0")["containers"][0]["volumeMounts"]
    assert mounts == [{"name": "lockstep-cluster", "mountPath": "/etc/lockstep-cluster"}]


WRONG = [
    ([role("worker", 2)], "spec.roles"),
    ([role("head", 2)], "spec.roles[0].replicas"),
    ([role("head", 1), role("boss", 1)], "spec.roles[1].name"),
    (
        [role("head", 1), role("driver", 1, command=None)],
        "spec.roles[1].template.spec.containers[0].command",
    ),
]


@pytest.mark.parametrize(("roles", "field"), WRONG)
def test_what_a_cluster_cannot_be_is_named(roles: list[Any], field: str) -> None:
    assert [p.field for p in problems(job(*roles, framework="ray"))] == [field]


def test_megatron_is_told_its_split() -> None:
    given = job(
        role(gpus=4, command=["torchrun", "pretrain_gpt.py"]),
        framework="megatron",
        parallelism={"tensor": 4, "pipeline": 2},
    )
    told = environment(given, "digits-worker-1")
    wanted = {"CUDA_DEVICE_MAX_CONNECTIONS": "1", "GPUS_PER_NODE": "4", "NODE_RANK": "1"}
    assert wanted | {"TP_SIZE": "4", "PP_SIZE": "2", "NUM_NODES": "2"} == {
        key: told[key] for key in (*wanted, "TP_SIZE", "PP_SIZE", "NUM_NODES")
    }
    assert launched(given)


def test_deepspeed_with_a_launcher_has_a_host_file_and_keys() -> None:
    given = job(*mpi_roles(processesPerNode=2), framework="deepspeed")
    framework = FRAMEWORKS["deepspeed"]
    assert not problems(given)
    assert not launched(given)
    assert logs_in(given, framework)
    assert [r.name for r in ranked("deepspeed", given.spec.roles)] == ["worker"]
    assert framework.files(given, frozenset())["hostfile"].count(" slots=2\n") == 2
    spec = spec_of(given, "digits-launcher-0")
    assert {"name": "lockstep-deepspeed", "mountPath": "/job"} in (
        spec["containers"][0]["volumeMounts"]
    )
    assert [v["name"] for v in spec["volumes"]].count("lockstep-ssh") == 1
    assert [m.name for m in framework.deciding(given)] == ["digits-launcher-0"]


def test_deepspeed_without_a_launcher_is_torchruns() -> None:
    given = job(role(command=["deepspeed", "train.py"]), framework="deepspeed")
    assert environment(given, "digits-worker-1")["PET_NODE_RANK"] == "1"
    assert not logs_in(given, FRAMEWORKS["deepspeed"])


def test_deepspeed_with_a_launcher_alone_is_refused() -> None:
    wrong = problems(job(role("launcher", 1), framework="deepspeed"))
    assert [p.field for p in wrong] == ["spec.roles"]


def test_horovod_discovers_hosts_with_their_slots() -> None:
    given = job(*mpi_roles(processesPerNode=2, min=1, max=3), framework="horovod")
    files = FRAMEWORKS["horovod"].files(given, frozenset({"digits-worker-1"}))
    assert files["discover_hosts.sh"].endswith("echo digits-worker-1.digits.team.svc:2\n")
    assert environment(given, "digits-launcher-0")["HOROVOD_ELASTIC_TIMEOUT"] == "600"


@pytest.mark.parametrize("framework", ["mxnet", "byteps"])
def test_parameter_servers_are_told_their_root(framework: str) -> None:
    given = job(role("scheduler", 1), role("server", 2), role("worker", 3), framework=framework)
    told = environment(given, "digits-worker-2")
    assert told["DMLC_PS_ROOT_URI"] == "digits-scheduler-0.digits"
    assert (told["DMLC_NUM_SERVER"], told["DMLC_NUM_WORKER"]) == ("2", "3")
    assert (told["DMLC_ROLE"], told["DMLC_WORKER_ID"]) == ("worker", "2")
    assert "DMLC_WORKER_ID" not in environment(given, "digits-server-1")
    deciding = FRAMEWORKS[framework].deciding(given)
    assert {m.role.name for m in deciding} == {"worker"}
    if framework == "mxnet":
        config = json.loads(told["MX_CONFIG"])
        assert config["task"] == {"type": "worker", "index": 2}
        assert [len(config["cluster"][r]) for r in ("scheduler", "server", "worker")] == [1, 2, 3]
