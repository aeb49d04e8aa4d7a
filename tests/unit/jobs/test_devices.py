"""What a job's pods ask of devices, and what they are told of those they get."""

import pytest

from lockstep.api.training import TrainingJob
from lockstep.api.wire import convert
from lockstep.jobs.devices import alignment, tell_nics


def job(of_role: object = None, **spec: object) -> TrainingJob:
    role = {"name": "worker", "template": {}, "alignment": of_role}
    return convert(
        {"metadata": {"name": "j"}, "spec": {"framework": "plain", "roles": [role], **spec}},
        TrainingJob,
    )


@pytest.mark.parametrize(
    ("spec", "annotations"),
    [
        ({}, {}),
        ({"alignment": {}}, {}),
        (
            {"alignment": {"required": ["numa", "pcie"], "preferred": ["nvlink"]}},
            {
                "lockstep.dev/align-required": "numa,pcie",
                "lockstep.dev/align-preferred": "nvlink",
            },
        ),
    ],
)
def test_what_the_job_says_is_written_on_its_pods(spec, annotations):
    asked = job(**spec)
    assert alignment(asked, asked.spec.roles[0]) == annotations


@pytest.mark.parametrize(
    ("of_role", "annotations"),
    [
        (None, {"lockstep.dev/align-required": "numa"}),
        ({}, {}),
        ({"preferred": ["pcie"]}, {"lockstep.dev/align-preferred": "pcie"}),
    ],
)
def test_a_role_speaks_in_place_of_its_job(of_role, annotations):
    asked = job(of_role, alignment={"required": ["numa"]})
    assert alignment(asked, asked.spec.roles[0]) == annotations


def test_a_container_with_nics_is_told_which():
    container = {"resources": {"limits": {"lockstep.dev/nics": 2}}, "env": [{"name": "A"}]}
    tell_nics(container)
    assert [variable["name"] for variable in container["env"]] == [
        "LOCKSTEP_HCAS",
        "NCCL_IB_HCA",
        "A",
    ]
    assert container["env"][0]["valueFrom"] == {
        "fieldRef": {"fieldPath": "metadata.annotations['lockstep.dev/hcas']"}
    }
    assert container["env"][1]["value"] == "=$(LOCKSTEP_HCAS)"


@pytest.mark.parametrize(
    "container",
    [
        {"resources": {"limits": {"nvidia.com/gpu": 8}}},
        {
            "resources": {"requests": {"lockstep.dev/nics": 1}},
            "env": [{"name": "NCCL_IB_HCA", "value": "mlx5_7"}],
        },
    ],
)
def test_others_are_left_as_they_are(container):
    before = dict(container)
    tell_nics(container)
    assert container == before
