"""A job that trains with DDP on a cluster, and what its ranks print."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tests.support.on_cluster import OnCluster
from tools.cluster import images

SCRIPT = Path(__file__).parents[1] / "cluster/train_ddp.py"
JOB = "ddp"
PODS = f"lockstep.dev/job={JOB}"


def image(cluster: OnCluster) -> str:
    """Return the image with torch; it is in the cluster's registry then."""
    made = images.torch()
    cluster.cluster.push(made)
    return made.reference


def submit(cluster: OnCluster, image: str, pods: int = 3, least: int = 0, **spec: Any) -> None:
    """Submit the job and wait until its ranks step."""
    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "script"},
        "data": {"train.py": SCRIPT.read_text()},
    }
    cluster.apply(config, job(image, pods, least, **spec))
    cluster.wait(lambda: newest(cluster) >= 5 or failed(cluster), 180, "the gang steps")
    assert not failed(cluster)


def job(image: str, pods: int = 3, least: int = 0, **spec: Any) -> dict[str, Any]:
    """Return a job of ranks that step, one on each node; with *least* it is elastic."""
    main = {
        "name": "main",
        "image": image,
        "command": ["python3", "/script/train.py"],
        "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}},
        "volumeMounts": [{"name": "script", "mountPath": "/script"}],
    }
    pod = {
        "terminationGracePeriodSeconds": 1,
        "containers": [main],
        "volumes": [{"name": "script", "configMap": {"name": "script"}}],
    }
    role: dict[str, Any] = {
        "name": "worker",
        "replicas": pods,
        "processesPerNode": 1,
        "template": {"spec": pod},
    }
    role |= {"min": least, "max": pods} if least else {}
    return {
        "apiVersion": "lockstep.dev/v1alpha1",
        "kind": "TrainingJob",
        "metadata": {"name": JOB},
        "spec": {"framework": "pytorch", "strategy": "Spread", "roles": [role], **spec},
    }


def ranks(cluster: OnCluster) -> dict[str, str]:
    """Return the node of each pod that is not on its way out."""
    return {
        pod["metadata"]["name"]: pod["spec"].get("nodeName", "")
        for pod in cluster.pods(PODS)
        if "deletionTimestamp" not in pod["metadata"]
    }


def lines(cluster: OnCluster) -> str:
    """Return what all ranks printed so far."""
    return "".join(cluster.logs(name) for name in ranks(cluster))


def steps(cluster: OnCluster) -> dict[float, int]:
    """Return the steps that rank 0 told, by their times."""
    found = re.findall(r"^step (\d+) at (\S+)$", lines(cluster), re.MULTILINE)
    return {float(at): int(step) for step, at in found}


def failed(cluster: OnCluster) -> str:
    """Return why the job failed, if it did."""
    status = cluster.get("trainingjobs.lockstep.dev", JOB).get("status", {})
    return str(status["message"]) if status.get("phase") == "Failed" else ""


def newest(cluster: OnCluster) -> int:
    """Return the highest step that rank 0 told."""
    return max(steps(cluster).values(), default=0)


def starts(cluster: OnCluster) -> list[tuple[int, int, int]]:
    """Return rank, size and first step of each start of a rank."""
    found = re.findall(r"^rank (\d+) of (\d+) on \S+ starts at step (\d+)", lines(cluster), re.M)
    return [(int(rank), int(size), int(step)) for rank, size, step in found]
