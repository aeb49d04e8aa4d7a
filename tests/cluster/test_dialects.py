"""Manifests of other systems find each other by the names that those systems promise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.support.on_cluster import OnCluster

from lockstep.compat import dialects

Json = dict[str, Any]
PORT = 7000
MEET = """
import os, socket, sys, time
host, rank, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
if rank == 0:
    server = socket.create_server(("", 7000))
    met = sorted(server.accept()[0].recv(9).decode() for _ in range(size - 1))
    print("met", *met, flush=True)
else:
    for _ in range(240):
        try:
            link = socket.create_connection((host, 7000), 2)
            break
        except OSError:
            time.sleep(0.5)
    link.sendall(str(rank).encode())
"""


def _pod(image: str, host: str, rank: str, size: int = 3) -> Json:
    words = f'exec python -c "$MEET" {host} {rank} {size}'
    main = {
        "name": "pytorch",
        "image": image,
        "command": ["sh", "-c", words],
        "env": [{"name": "MEET", "value": MEET}],
    }
    return {"spec": {"restartPolicy": "Never", "containers": [main]}}


def pytorch(image: str) -> Json:
    pod = _pod(image, "$MASTER_ADDR", "$RANK")
    roles = {
        name: {"replicas": count, "restartPolicy": "Never", "template": pod}
        for name, count in (("Master", 1), ("Worker", 2))
    }
    return _object("kubeflow.org/v1", "PyTorchJob", {"pytorchReplicaSpecs": roles})


def jobset(image: str) -> Json:
    def job(first: int, count: int) -> Json:
        pod = _pod(image, "story-leader-0-0.story", f"$((JOB_COMPLETION_INDEX + {first}))")
        sizes = {"parallelism": count, "completions": count}
        return {"spec": {**sizes, "completionMode": "Indexed", "template": pod}}

    jobs = [
        {"name": "leader", "replicas": 1, "template": job(0, 1)},
        {"name": "workers", "replicas": 1, "template": job(1, 2)},
    ]
    return _object("jobset.x-k8s.io/v1alpha2", "JobSet", {"replicatedJobs": jobs})


def volcano(image: str) -> Json:
    def task(name: str, first: int, count: int) -> Json:
        pod = _pod(image, "story-leader-0.story", f"$((VC_TASK_INDEX + {first}))")
        return {"name": name, "replicas": count, "template": pod}

    spec = {
        "minAvailable": 3,
        "plugins": {"env": [], "svc": []},
        "tasks": [task("leader", 0, 1), task("workers", 1, 2)],
    }
    return _object("batch.volcano.sh/v1alpha1", "Job", spec)


def _object(version: str, kind: str, spec: Json) -> Json:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "story"}, "spec": spec}


@pytest.fixture(scope="module")
def served(installed: OnCluster) -> OnCluster:
    """The cluster with the kinds of all other systems, as their own installers leave them."""
    installed.apply(*dialects.manifests(dialects.DIALECTS))
    return installed


@pytest.mark.parametrize("manifest", [pytorch, jobset, volcano], ids=lambda one: one.__name__)
@pytest.mark.usefixtures("served")
def test_gang_of_another_system_meets(cluster: OnCluster, manifest: Callable[[str], Json]) -> None:
    cluster.apply(manifest(cluster.lockstep_image()))

    def succeeded() -> bool:
        job = cluster.get("trainingjobs.lockstep.dev", "story")
        assert job.get("status", {}).get("phase") != "Failed", job["status"]
        return job.get("status", {}).get("phase") == "Succeeded"

    cluster.wait(succeeded, 180, "the gang meets and ends")
    told = [cluster.logs(pod["metadata"]["name"]) for pod in cluster.pods()]
    assert any("met 1 2" in one for one in told)
