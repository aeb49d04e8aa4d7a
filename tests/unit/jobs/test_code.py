"""A job's code in its pods."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.jobs import job, mpi_roles, role

from lockstep.api.code import Code
from lockstep.jobs import objects
from lockstep.jobs.frameworks import FRAMEWORKS
from lockstep.jobs.frameworks.base import members

PARTS = [f"code-{letter * 40}" for letter in "ab"]


def pods(image: str = "", **spec: Any) -> list[dict[str, Any]]:
    given = job(*spec.pop("roles", [role()]), **spec)
    everyone, framework = members(given), FRAMEWORKS[given.spec.framework]
    return [objects.pod(given, framework, one, everyone, image)["spec"] for one in everyone]


@pytest.mark.parametrize("framework", ["plain", "pytorch", "mpi"])
def test_every_pod_runs_in_the_code(framework: str) -> None:
    roles = mpi_roles() if framework == "mpi" else [role()]
    for spec in pods(framework=framework, roles=roles, code=Code(parts=PARTS)):
        first, main = spec["initContainers"][0], spec["containers"][0]
        assert first["args"] == ["/lockstep/parts", "/lockstep/code", *PARTS]
        assert main["workingDir"] == "/lockstep/code"
        assert {one["mountPath"]: one.get("readOnly") for one in first["volumeMounts"]} == {
            "/lockstep/parts": True,
            "/lockstep/code": None,
        }
        assert "/lockstep/parts" not in [one["mountPath"] for one in main["volumeMounts"]]
        (source,) = (one for one in spec["volumes"] if one["name"] == "lockstep-code-parts")
        assert [one["configMap"]["name"] for one in source["projected"]["sources"]] == PARTS


def test_an_image_gets_the_unpacker_of_the_controllers() -> None:
    (spec,) = pods(
        "lockstep:1", framework="plain", code=Code(parts=PARTS), roles=[role(replicas=1)]
    )
    first = spec["initContainers"][0]
    assert (first["image"], first["command"][-1]) == ("lockstep:1", "lockstep.train.unpack")


def test_a_part_twice_is_mounted_once() -> None:
    code = Code(parts=[PARTS[0], PARTS[1], PARTS[0]])
    spec = pods(framework="plain", code=code)[0]
    (source,) = (one for one in spec["volumes"] if one["name"] == "lockstep-code-parts")
    assert len(source["projected"]["sources"]) == 2
    assert spec["initContainers"][0]["args"][2:] == code.parts


def test_a_record_alone_changes_no_pod() -> None:
    assert pods(framework="plain", code=Code(digest="sha256:0")) == pods(framework="plain")
