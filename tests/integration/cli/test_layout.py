"""A job that states its parallelism: its ranks' nodes, and the drawing of them."""

from __future__ import annotations

import json
from pathlib import Path

import yaml


def test_ranks_reach_the_job_as_node_ranks_and_are_drawn(plane, tmp_path: Path):
    resources = {"limits": {"nvidia.com/gpu": 8}}
    container = {"name": "main", "image": "x", "command": ["x"], "resources": resources}
    job = {
        "apiVersion": "lockstep.dev/v1alpha1",
        "kind": "TrainingJob",
        "metadata": {"name": "llm"},
        "spec": {
            "framework": "pytorch",
            "simulated": True,
            "roles": [
                {"name": "worker", "replicas": 4, "template": {"spec": {"containers": [container]}}}
            ],
            # Stages are neighbours in rank order, and copies, which talk more, are not.
            "parallelism": {"tensor": 8, "pipeline": 2, "order": "tp-pp-dp"},
        },
    }
    file = tmp_path / "llm.yaml"
    file.write_text(yaml.safe_dump(job))
    plane.ok("submit", "-f", str(file))
    plane.eventually_bound("llm", 4)
    pods = json.loads(plane.ok("list", "pods", "-o", "json"))["items"]
    leaf: dict[int, str] = {}
    nodes = json.loads(plane.ok("list", "nodes", "-o", "json"))["items"]
    leaves = {one["metadata"]["name"]: one["metadata"]["labels"].get("leaf") for one in nodes}
    for pod in pods:
        env = pod["spec"]["containers"][0]["env"]
        rank = next(int(v["value"]) for v in env if v["name"] == "PET_NODE_RANK")
        assert pod["metadata"]["annotations"]["lockstep.dev/rank"] == str(rank)
        leaf[rank] = leaves[pod["spec"]["nodeName"]]
    assert leaf[0] == leaf[2] != leaf[1] == leaf[3]
    drawing = plane.ok("explain", "llm", "--layout")
    assert "ranks 0-7" in drawing
    assert "in random order" in drawing
    plane.ok("delete", "llm")
    answer = plane.run("explain", "llm", "--layout")
    assert answer.returncode != 0
    assert "no gang 'llm'" in answer.stderr
