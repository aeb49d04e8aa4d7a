from __future__ import annotations

from typing import Any

import pytest

from lockstep.api.training import TrainingJob
from lockstep.api.wire import convert
from lockstep.cli.build import BadFlag, training_job
from lockstep.cli.flags import Flags
from lockstep.cli.load import problems


def job(**given: Any) -> dict[str, Any]:
    return training_job(Flags(**{"framework": "pytorch", "command": ("python", "t.py"), **given}))


def container(built: dict[str, Any], role: int = 0) -> dict[str, Any]:
    return built["spec"]["roles"][role]["template"]["spec"]["containers"][0]


def pod(built: dict[str, Any], role: int = 0) -> dict[str, Any]:
    return built["spec"]["roles"][role]["template"]["spec"]


def test_the_least_job_is_valid_and_says_only_what_was_given() -> None:
    built = job()
    assert problems(built) == []
    assert built["metadata"] == {"generateName": "pytorch-"}
    assert built["spec"].keys() == {"framework", "queue", "roles"}
    assert container(built) == {"name": "main", "image": "none", "command": ["python", "t.py"]}
    assert "nodeSelector" not in pod(built)
    required = pod(built)["affinity"]["nodeAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]
    own = {"key": "lockstep.dev/node", "operator": "Exists"}
    assert required == {"nodeSelectorTerms": [{"matchExpressions": [own]}]}


def test_every_flag_lands_in_its_field() -> None:
    built = job(
        name="bert",
        workers=4,
        minimum=2,
        maximum=8,
        processes=2,
        image="pytorch/pytorch",
        gpus=8,
        cpu="16",
        memory="64Gi",
        env=("LR=0.1", "EMPTY=", "URL=a=b"),
        volumes=("/data:/mnt:ro", "claim:/out"),
        node_labels=("zone=a",),
        working_dir="/src",
        queue="research",
        priority="train",
        topology="leaf",
        max_restarts=5,
        max_wait="2h",
        suspend=True,
    )
    assert problems(built) == []
    read = convert(built, TrainingJob)
    role = read.spec.roles[0]
    assert read.metadata.name == "bert"
    assert (role.replicas, role.min, role.max, role.processes_per_node) == (4, 2, 8, 2)
    assert (read.spec.queue, read.spec.priority_class_name) == ("research", "train")
    assert read.spec.topology is not None
    assert (read.spec.topology.required, read.spec.topology.preferred) == ("leaf", None)
    assert (read.spec.recovery.max_restarts, read.spec.max_wait) == (5, "2h")
    assert read.spec.suspend
    assert container(built)["resources"] == {
        "requests": {"cpu": "16", "memory": "64Gi"},
        "limits": {"nvidia.com/gpu": 8},
    }
    assert container(built)["env"] == [
        {"name": "LR", "value": "0.1"},
        {"name": "EMPTY", "value": ""},
        {"name": "URL", "value": "a=b"},
    ]
    assert container(built)["workingDir"] == "/src"
    assert container(built)["volumeMounts"] == [
        {"name": "volume-0", "mountPath": "/mnt", "readOnly": True},
        {"name": "volume-1", "mountPath": "/out"},
    ]
    assert pod(built)["volumes"] == [
        {"name": "volume-0", "hostPath": {"path": "/data"}},
        {"name": "volume-1", "persistentVolumeClaim": {"claimName": "claim"}},
    ]
    assert pod(built)["nodeSelector"] == {"zone": "a"}
    assert "affinity" not in pod(built)


def test_an_mpi_job_runs_its_command_in_a_launcher_without_gpus() -> None:
    built = job(framework="mpi", command=("mpirun", "./a.out"), workers=3, gpus=8, cpu="2")
    assert problems(built) == []
    launcher, worker = built["spec"]["roles"]
    assert (launcher["name"], launcher["replicas"]) == ("launcher", 1)
    assert (worker["name"], worker["replicas"]) == ("worker", 3)
    assert container(built, 0)["command"] == ["mpirun", "./a.out"]
    assert container(built, 0)["resources"] == {"requests": {"cpu": "2"}}
    assert "command" not in container(built, 1)
    assert container(built, 1)["resources"]["limits"] == {"nvidia.com/gpu": 8}


@pytest.mark.parametrize(
    ("given", "flag", "says"),
    [
        ({"command": ()}, "COMMAND", "-- python train.py"),
        ({"workers": 2, "minimum": 3}, "--min", "3 exceeds --workers 2"),
        ({"workers": 2, "maximum": 1}, "--max", "1 is less than --workers 2"),
        ({"cpu": "two"}, "--cpu", "'two' is not a quantity"),
        ({"memory": "16GB"}, "--memory", "'16GB' is not a quantity"),
        ({"max_wait": "2 hours"}, "--max-wait", "write one such as 90s"),
        ({"env": ("LR",)}, "--env", "'LR' is not NAME=VALUE"),
        ({"env": ("1X=2",)}, "--env", "'1X=2' is not NAME=VALUE"),
        ({"volumes": ("/data",)}, "--volume", "/HOST/PATH:/MOUNT/PATH"),
        ({"volumes": ("/data:mnt",)}, "--volume", "/HOST/PATH:/MOUNT/PATH"),
        ({"volumes": ("/a:/b:rx",)}, "--volume", ":ro to read only"),
        ({"node_labels": ("zone",)}, "--node-label", "'zone' is not LABEL=VALUE"),
        ({"topology": "leaf", "prefer_topology": "leaf"}, "--prefer-topology", "--topology"),
    ],
)
def test_a_flag_that_makes_no_sense_is_named(given: Any, flag: str, says: str) -> None:
    with pytest.raises(BadFlag) as caught:
        job(**given)
    assert caught.value.flag == flag
    assert says in str(caught.value)
