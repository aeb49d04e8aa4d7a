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
    kept = world.plane.data / "artefacts"
    assert kept.stat().st_mode & 0o777 == 0o700
    (there,) = kept.glob(f"default/*/{made['uri'].removeprefix('minio://')}")
    assert there.read_text().splitlines()[-1] == "49"


def test_other_namespace_reads_no_artefact_by_its_address(world: Pipelines) -> None:
    given = {"name": "main", "image": "none", "command": ["sh", "-c", "echo canary > /made/d"]}
    made = {
        "template": {"spec": {"containers": [given]}},
        "shared": ["/made"],
        "outputs": [{"name": "d", "path": "/made/d", "kind": "Artifact", "type": "t"}],
    }
    world.submit(run("owner", "default", {"main": {"pod": made}}))
    eventually_sync(lambda: world.status("owner").get("completionTime"), 90, "it is over")
    uri = world.status("owner")["steps"]["main"]["outputs"]["d"]["uri"]
    (place,) = (world.plane.data / "artefacts" / "default").iterdir()

    reads = {"name": "main", "image": "none", "command": ["cat", "/in/d"]}
    asked = {
        "template": {"spec": {"containers": [reads]}},
        "shared": ["/in"],
        "fetch": [{"artifact": "${{ {'uri': '" + uri + "'} }}", "path": "/in/d"}],
    }
    file = f"/in/{uri.removeprefix('minio://')}"
    mount = {"volumeMounts": [{"name": "v", "mountPath": "/in"}]}
    pod = {
        "schedulerName": "lockstep",
        "restartPolicy": "Never",
        "containers": [{**reads, "command": ["cat", file], **mount}],
        "volumes": [{"name": "v", "hostPath": {"path": str(place)}}],
    }
    meta = {"name": "thief", "namespace": "next-door"}
    world.submit(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "next-door"}},
        run("thief", "next-door", {"main": {"pod": asked}}),
        {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": pod},
    )

    def status(path: str) -> Json:
        found = world.plane.read(path.format("namespaces/next-door"))
        return dict(found.get("status") or {})

    runs = "apis/lockstep.dev/v1alpha1/{}/pipelineruns/thief"
    eventually_sync(lambda: status(runs).get("completionTime"), 90, "it is over")
    over = status(runs)
    assert (over["phase"], "there is nothing" in str(over)) == ("Failed", True), over
    eventually_sync(
        lambda: "pods may not see" in str(status("api/v1/{}/pods/thief")), 60, "it is refused"
    )


def run(name: str, namespace: str, templates: Json) -> Json:
    body = {"apiVersion": "lockstep.dev/v1alpha1", "kind": "PipelineRun"}
    meta = {"name": name, "namespace": namespace}
    return {**body, "metadata": meta, "spec": {"templates": templates}}


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
    world.submit(run("others", "default", templates))
    eventually_sync(lambda: world.status("others").get("completionTime"), 90, "it is over")
    assert world.status("others")["phase"] == "Succeeded", world.status("others")
    assert world.plane.ok("pipeline", "logs", "others", "read") == "deep\n"
