"""An MPIJob as Kubeflow's operator takes it: mpirun reaches its workers' pods by ssh."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.on_cluster import OnCluster
from tools.cluster import images

from lockstep.compat import dialects

Json = dict[str, Any]
MPIRUN = ["mpirun", "--allow-run-as-root", "--mca", "btl_tcp_if_include", "eth0", "pi"]


def job(image: str) -> Json:
    """Return two workers of two slots, whose cards fill a node, and the launcher that sums pi."""
    cards = {"limits": {"nvidia.com/gpu": 8}}
    worker = {"containers": [{"name": "worker", "image": image, "resources": cards}]}
    launcher = {"containers": [{"name": "launcher", "image": image, "command": MPIRUN}]}
    labels = {"labels": {"app": "pi-worker"}}
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": "pi"},
        "spec": {
            "slotsPerWorker": 2,
            "runPolicy": {"cleanPodPolicy": "Running"},
            "mpiReplicaSpecs": {
                "Launcher": {"replicas": 1, "template": {"spec": launcher}},
                "Worker": {"replicas": 2, "template": {"metadata": labels, "spec": worker}},
            },
        },
    }


@pytest.mark.timeout(900)
@pytest.mark.usefixtures("cards")
def test_mpirun_reaches_workers_on_two_nodes_by_ssh(cluster: OnCluster) -> None:
    cluster.apply(*dialects.manifests(["kubeflow"]))
    image = images.mpi()
    cluster.cluster.push(image)
    cluster.apply(job(image.reference))
    nodes: set[str] = set()

    def over() -> bool:
        placed = [pod["spec"].get("nodeName") for pod in cluster.pods("app=pi-worker")]
        nodes.update(filter(None, placed))
        status = cluster.get("mpijobs.kubeflow.org", "pi").get("status", {})
        ended = {one["type"] for one in status.get("conditions", ()) if one["status"] == "True"}
        assert "Failed" not in ended, status
        return "Succeeded" in ended

    cluster.wait(over, 240, "mpirun ends")
    assert len(nodes) == 2
    told = {name: cluster.logs(name) for name in names(cluster, "Succeeded")}
    assert "pi is 3.141592654, summed by 4 ranks" in "".join(told.values()), told
    cluster.wait(
        lambda: not names(cluster, "Running"), 60, "its workers end, as cleanPodPolicy asks"
    )


def names(cluster: OnCluster, phase: str) -> list[str]:
    return [p["metadata"]["name"] for p in cluster.pods() if p["status"]["phase"] == phase]
