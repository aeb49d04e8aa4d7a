"""A spare takes a lost pod's rank; a job shrinks and grows; a node that leaves is left in time."""

from __future__ import annotations

import json

import pytest
from tests.support import cluster_training
from tests.support.cluster_training import JOB, newest, ranks, starts
from tests.support.on_cluster import OnCluster

LEAVING = "lockstep.dev/leaving"


@pytest.fixture(scope="module")
def torch_image(installed: OnCluster) -> str:
    return cluster_training.image(installed)


def sizes(cluster: OnCluster) -> list[int]:
    """Return the size of the world at each start of rank 0, the oldest first."""
    return [size for rank, size, _ in starts(cluster) if rank == 0]


def resumed(cluster: OnCluster) -> dict[int, int]:
    """Return the step at which each rank started again; a pod that is gone tells nothing."""
    return {rank: step for rank, _, step in starts(cluster) if step}


def restarts(cluster: OnCluster) -> int:
    return int(cluster.get("trainingjob", JOB)["status"].get("restarts", 0))


@pytest.mark.timeout(900)
def test_spare_takes_the_rank_of_a_node_that_leaves(cluster: OnCluster, torch_image: str) -> None:
    cluster_training.submit(cluster, torch_image, 2, recovery={"spares": 1})
    cluster.wait(lambda: len(ranks(cluster)) == 3, 120, "the spare stands by")
    cluster.wait(lambda: all(ranks(cluster).values()), 60, "the spare has a node")
    before = newest(cluster)
    lost = ranks(cluster)[f"{JOB}-worker-1"]
    cluster.kubectl("taint", "node", lost, f"{LEAVING}=:NoSchedule")
    try:
        cluster.wait(lambda: len(resumed(cluster)) == 2, 120, "both ranks start again")
        assert len(set(resumed(cluster).values())) == 1
        assert min(resumed(cluster).values()) >= before, "both go on from memory"
        reached = newest(cluster)
        cluster.wait(lambda: newest(cluster) > reached + 5, 60, "the job steps")
    finally:
        cluster.kubectl("taint", "node", lost, f"{LEAVING}-")
    assert restarts(cluster) == 0, "a notice is no restart"


@pytest.mark.timeout(900)
def test_job_shrinks_and_grows_without_losing_steps(cluster: OnCluster, torch_image: str) -> None:
    cluster_training.submit(cluster, torch_image, 3, least=2)
    (role,) = cluster.get("trainingjob", JOB)["spec"]["roles"]
    for pods in (2, 3):
        before = newest(cluster)
        patch = json.dumps({"spec": {"roles": [{**role, "replicas": pods}]}})
        cluster.kubectl("patch", "trainingjob", JOB, "--type=merge", "-p", patch)
        cluster.wait(lambda n=pods: sizes(cluster)[-1] == n, 120, f"the world has {pods} ranks")
        first = [step for rank, size, step in starts(cluster) if (rank, size) == (0, pods)][-1]
        assert first >= before, "no step is lost"
        cluster.wait(lambda n=first: newest(cluster) > n + 5, 60, "the job steps")
    assert restarts(cluster) == 0
