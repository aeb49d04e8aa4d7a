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


def test_the_smallest_job_is_valid_and_states_only_given_values() -> None:
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
        "limits": {"cpu": "16", "memory": "64Gi", "nvidia.com/gpu": 8},
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


def test_an_mpi_job_runs_its_command_in_a_gpuless_launcher() -> None:
    built = job(framework="mpi", command=("mpirun", "./a.out"), workers=3, gpus=8, cpu="2")
    assert problems(built) == []
    launcher, worker = built["spec"]["roles"]
    assert (launcher["name"], launcher["replicas"]) == ("launcher", 1)
    assert (worker["name"], worker["replicas"]) == ("worker", 3)
    assert container(built, 0)["command"] == ["mpirun", "./a.out"]
    assert container(built, 0)["resources"] == {"requests": {"cpu": "2"}, "limits": {"cpu": "2"}}
    assert "command" not in container(built, 1)
    assert container(built, 1)["resources"]["limits"] == {"cpu": "2", "nvidia.com/gpu": 8}


def test_memory_is_a_limit_unless_there_is_a_larger_one() -> None:
    assert container(job(memory="1Gi"))["resources"]["limits"] == {"memory": "1Gi"}
    both = container(job(memory="1Gi", memory_limit="2Gi"))["resources"]
    assert both == {"requests": {"memory": "1Gi"}, "limits": {"memory": "2Gi"}}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, "/here"),
        ({"working_dir": "/there"}, "/there"),
        ({"image": "pytorch"}, None),
        ({"simulated": True}, None),
    ],
)
def test_a_command_without_an_image_runs_where_the_caller_is(
    given: dict[str, Any], expected: str | None
) -> None:
    flags = Flags(**{"framework": "plain", "command": ("pwd",), **given})
    assert container(training_job(flags, "/here")).get("workingDir") == expected


@pytest.mark.parametrize(
    ("given", "flag", "says"),
    [
        ({"command": ()}, "COMMAND", "-- python train.py"),
        ({"command": ("echo a && ls",)}, "COMMAND", "-- sh -c 'echo a && ls'"),
        ({"memory": "2Gi", "memory_limit": "1Gi"}, "--memory-limit", "less than --memory 2Gi"),
        ({"workers": 2, "minimum": 3}, "--min", "3 exceeds --workers 2"),
        ({"workers": 2, "maximum": 1}, "--max", "1 is less than --workers 2"),
        ({"cpu": "two"}, "--cpu", "'two' is not a quantity"),
        ({"memory": "16GB"}, "--memory", "'16GB' is not a quantity"),
        ({"max_wait": "2 hours"}, "--max-wait", "write one such as 90s"),
        ({"env": ("LR",)}, "--env", "'LR' is not NAME=VALUE"),
        ({"env": ("1X=2",)}, "--env", "'1X' cannot name a variable"),
        ({"env": ("GRÜSSE=x",)}, "--env", "'GRÜSSE' cannot name a variable: use ASCII letters"),
        ({"env": ("A=1", "A=2")}, "--env", "A is given twice: A=1 and A=2; leave one out"),
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
