"""What a job's objects look like on the wire."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.jobs import job, mpi_roles, role

from lockstep.api.training import TrainingJob
from lockstep.jobs import objects
from lockstep.jobs.frameworks import FRAMEWORKS
from lockstep.jobs.frameworks.base import members

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
ONE = [{"matchExpressions": [{"key": "zone", "operator": "Exists"}]}]


def built(given: TrainingJob, rank: int = 0) -> dict[str, Any]:
    everyone = members(given)
    return objects.pod(given, FRAMEWORKS[given.spec.framework], everyone[rank], everyone)


def test_a_pod_says_where_it_belongs() -> None:
    given = job(role("ps", 1), role(replicas=2), framework="plain", queue="research")
    pod = built(given, 2)
    assert pod["metadata"]["name"] == "digits-worker-1"
    assert pod["metadata"]["labels"] == {
        "lockstep.dev/job": "digits",
        "lockstep.dev/gang": "digits",
        "lockstep.dev/gang-group": "worker",
        "lockstep.dev/role": "worker",
        "lockstep.dev/index": "1",
        "lockstep.dev/attempt": "0",
        "lockstep.dev/queue": "research",
    }
    assert pod["metadata"]["annotations"] == {
        "lockstep.dev/size": "ps=1,worker=2",
        "lockstep.dev/rank": "2",
    }
    spec = {k: pod["spec"][k] for k in ("hostname", "subdomain", "schedulerName", "restartPolicy")}
    assert spec == {
        "hostname": "digits-worker-1",
        "subdomain": "digits",
        "schedulerName": "lockstep",
        "restartPolicy": "Never",
    }


def test_pods_have_names_under_their_templates_subdomain() -> None:
    given = job(role(pod={"subdomain": "example"}), framework="pytorch")
    assert [one.host for one in members(given)] == [
        "digits-worker-0.example",
        "digits-worker-1.example",
    ]
    pod = built(given, 1)
    assert pod["spec"]["subdomain"] == objects.service(given)["metadata"]["name"] == "example"
    env = {one["name"]: one.get("value") for one in pod["spec"]["containers"][0]["env"]}
    assert env["MASTER_ADDR"] == "digits-worker-0.example"


def test_every_object_ends_with_its_job() -> None:
    given = job(*mpi_roles(), framework="mpi")
    made = [
        built(given),
        objects.gang(given),
        objects.service(given),
        objects.config_map(given, {"a": "b"}),
        objects.ssh_secret(given, {}),
    ]
    names = ["digits-launcher-0", "digits", "digits", "digits-config", "digits-ssh"]
    assert [one["metadata"]["name"] for one in made] == names
    for one in made:
        (owner,) = one["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["uid"], owner["controller"]) == (
            "TrainingJob",
            "uid-digits",
            True,
        )
        assert one["metadata"]["namespace"] == "team"
        assert one["metadata"]["labels"]["lockstep.dev/job"] == "digits"


@pytest.mark.parametrize(
    ("given", "groups"),
    [
        (job(), [{"name": "worker", "min": 2}]),
        (job(role(replicas=4, min=2, max=8)), [{"name": "worker", "min": 2, "desired": 4}]),
        (job(role(replicas=2, min=2, max=8)), [{"name": "worker", "min": 2}]),
        (
            job(role(replicas=4, min=2, max=8), spot="AboveMin"),
            [
                {"name": "worker", "min": 2},
                {"name": "worker-spot", "min": 0, "desired": 2, "provision": "Desired"},
            ],
        ),
        (
            job(role(replicas=2, min=2, max=8), spot="AboveMin"),
            [{"name": "worker", "min": 2}],
        ),
        (
            job(role(topology={"required": "leaf"}), role("ps", 1), framework="plain"),
            [
                {"name": "worker", "min": 2, "topology": {"required": "leaf"}},
                {"name": "ps", "min": 1},
            ],
        ),
        (
            job(*mpi_roles(workers=3), framework="mpi"),
            [{"name": "launcher", "min": 1}, {"name": "worker", "min": 3}],
        ),
    ],
)
def test_the_gang_has_a_group_for_each_role(given: TrainingJob, groups: list[Any]) -> None:
    assert objects.gang(given)["spec"]["groups"] == groups


def test_the_gang_carries_the_jobs_wishes() -> None:
    given = job(queue="research", priorityClassName="train", topology={"required": "leaf"})
    spec = objects.gang(given)["spec"]
    assert (spec["queue"], spec["priorityClassName"]) == ("research", "train")
    assert spec["topology"] == {"required": "leaf"}
    assert built(given)["spec"]["priorityClassName"] == "train"


def test_the_service_names_pods_before_they_are_ready() -> None:
    spec = objects.service(job())["spec"]
    assert spec == {
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
        "selector": {"lockstep.dev/job": "digits"},
    }


def test_a_template_keeps_the_users_fields_and_is_never_changed() -> None:
    given = job(role(pod={"restartPolicy": "OnFailure", "nodeSelector": {"a": "b"}}))
    template = given.spec.roles[0].template
    template["metadata"] = {"labels": {"team": "x"}, "annotations": {"note": "y"}}
    template["spec"]["containers"][0]["terminationMessagePolicy"] = "File"
    before = str(template)
    pod = built(given)
    assert pod["metadata"]["labels"]["team"] == "x"
    assert pod["metadata"]["annotations"]["note"] == "y"
    assert pod["spec"]["restartPolicy"] == "OnFailure"
    assert pod["spec"]["nodeSelector"] == {"a": "b"}
    assert pod["spec"]["containers"][0]["terminationMessagePolicy"] == "File"
    assert str(template) == before


def test_a_gang_without_parallelism_says_nothing_of_ranks() -> None:
    assert "parallelism" not in objects.gang(job())["spec"]


def test_a_gang_carries_how_its_ranks_are_split() -> None:
    workers = role(replicas=2, processesPerNode=4)
    spec = objects.gang(job(workers, parallelism={"tensor": 4}))["spec"]
    assert spec["parallelism"] == {"tensor": 4}
    assert [group["processes"] for group in spec["groups"]] == [4]


def test_an_mpi_launcher_holds_no_rank() -> None:
    given = job(*mpi_roles(workers=2), framework="mpi", parallelism={"tensor": 2})
    groups = objects.gang(given)["spec"]["groups"]
    assert [group["processes"] for group in groups] == [0, 1]


@pytest.mark.parametrize(
    ("given", "launched"),
    [
        (job(), True),
        (job(role(command=["bash", "-c", "torchrun train.py"])), True),
        (job(launcher="None"), False),
        (job(role(command=None)), False),
        (job(framework="plain"), False),
        (job(*mpi_roles(), framework="mpi"), False),
    ],
)
def test_a_launcher_stands_before_the_command_where_it_has_use(
    given: TrainingJob, launched: bool
) -> None:
    main = built(given, 0)["spec"]["containers"][0]
    own = given.spec.roles[0].template["spec"]["containers"][0].get("command")
    assert main.get("command") == (["lockstep-run", "--", *own] if launched else own)
    mounts = [mount["name"] for mount in main.get("volumeMounts", [])]
    assert ("lockstep-launcher" in mounts) == launched


@pytest.mark.parametrize(("image", "brought"), [("pytorch:2", True), ("none", False)])
def test_an_image_has_the_launcher_brought(image: str, brought: bool) -> None:
    worker = role()
    worker["template"]["spec"]["containers"][0]["image"] = image
    given = job(worker)
    (first, *_) = everyone = members(given)
    spec = objects.pod(given, FRAMEWORKS["pytorch"], first, everyone, "lockstep:1")["spec"]
    main = spec["containers"][0]
    assert [one["image"] for one in spec.get("initContainers", [])] == ["lockstep:1"] * brought
    program = "/opt/lockstep-run/bin/lockstep-run" if brought else "lockstep-run"
    assert main["command"][:2] == [program, "--"]
    mounts = {mount["mountPath"] for mount in main["volumeMounts"]}
    assert ("/opt/lockstep-run" in mounts) == brought


def test_a_container_without_an_image_stays_on_imageless_nodes() -> None:
    bare = role()
    del bare["template"]["spec"]["containers"][0]["image"]
    bare["template"]["spec"]["affinity"] = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": ONE}}}
    spec = built(job(bare))["spec"]
    assert spec["containers"][0]["image"] == "none"
    (term,) = spec["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    assert [one["key"] for one in term["matchExpressions"]] == ["zone", "lockstep.dev/node"]
    assert "affinity" not in built(job())["spec"]


OWN = {"key": "zone", "operator": "In", "values": ["a"]}


@pytest.mark.parametrize(
    ("index", "operator", "terms"), [(0, "NotIn", 1), (1, "NotIn", 1), (2, "In", 6)]
)
def test_pods_beyond_the_minimum_stand_on_spot_nodes_alone(
    index: int, operator: str, terms: int
) -> None:
    required = {"nodeSelectorTerms": [{"matchExpressions": [OWN]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    template = role(replicas=3, min=2, max=4)
    template["template"]["spec"]["affinity"] = affinity
    given = job(template, spot="AboveMin")
    everyone = members(given)
    pod = objects.pod(given, FRAMEWORKS["pytorch"], everyone[index], everyone)
    (said,) = pod["spec"]["affinity"]["nodeAffinity"].values()
    found = [term["matchExpressions"] for term in said["nodeSelectorTerms"]]
    assert len(found) == terms
    assert all(one[0] == OWN for one in found)
    assert {expression["operator"] for one in found for expression in one[1:]} == {operator}
    group = "worker-spot" if index == 2 else "worker"
    assert pod["metadata"]["labels"]["lockstep.dev/gang-group"] == group
