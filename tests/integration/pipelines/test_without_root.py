"""Runs that name no store keep their artefacts on the machine of ``lockstep up``."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.pipelines import KFP, Pipelines
from tests.support.waiting import eventually_sync

Json = dict[str, Any]
pytestmark = pytest.mark.timeout(300)


def test_components_of_the_sdk_need_no_store(world: Pipelines) -> None:
    given = ("-p", "rows=8", "--name", "rootless", "--wait", "--timeout", "90")
    assert "Output = 140" in world.plane.ok("pipeline", "run", str(KFP / "squares.yaml"), *given)
    made = world.status("rootless")["steps"]["main.make"]["outputs"]["data"]
    assert made["uri"].startswith("minio://lockstep/runs/rootless-")
    kept = world.plane.data.with_name(f"{world.plane.data.name}-artefacts")
    assert kept.stat().st_mode & 0o777 == 0o700
    there = kept / "store" / made["uri"].removeprefix("minio://")
    assert there.read_text().splitlines()[-1] == "49"


def test_steps_that_mount_tmp_hand_on_directories(world: Pipelines) -> None:
    mount = {"name": "t", "mountPath": "/tmp"}  # noqa: S108

    def step(script: str, **files: Any) -> Json:
        container = {"name": "main", "image": "none", "command": ["sh", "-c", script]}
        spec = {
            "containers": [{**container, "volumeMounts": [mount]}],
            "volumes": [{"name": "t", "emptyDir": {}}],
        }
        return {"pod": {"template": {"spec": spec}, **files}}

    out = {"name": "d", "path": "/tmp/o/d", "kind": "Artifact", "type": "system.Artifact"}  # noqa: S108
    artifact = "${{ inputs.d }}"
    templates = {
        "main": {
            "graph": {
                "tasks": [
                    {"name": "make", "template": "make"},
                    {
                        "name": "read",
                        "template": "read",
                        "after": ["make"],
                        "arguments": {"d": "${{ tasks.make.outputs.d }}"},
                    },
                ]
            },
        },
        "make": step("mkdir -p /tmp/o/d/e; echo deep > /tmp/o/d/e/f", outputs=[out]),
        "read": {
            "inputs": ["d"],
            **step(
                "cat /in/d/e/f", shared=["/in"], fetch=[{"artifact": artifact, "path": "/in/d"}]
            ),
        },
    }
    body = {"apiVersion": "lockstep.dev/v1alpha1", "kind": "PipelineRun"}
    world.submit({**body, "metadata": {"name": "others"}, "spec": {"templates": templates}})
    eventually_sync(lambda: world.status("others").get("completionTime"), 90, "it is over")
    assert world.status("others")["phase"] == "Succeeded", world.status("others")
    assert world.plane.ok("pipeline", "logs", "others", "read") == "deep\n"
