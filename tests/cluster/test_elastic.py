"""A spare takes a lost pod's rank; a job shrinks and grows; a node that leaves is left in time."""

from __future__ import annotations

import json

import pytest
from tests.support import cluster_training
from tests.support.cluster_training import JOB, newest, ranks, starts
from tests.support.on_cluster import OnCluster

LEAVING = "lockstep.dev/leaving"
NOTICE = "spot instance: terminate in 120 s"
CLOUD = """
import http.server, pathlib, sys
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        told = pathlib.Path("/tmp/leaving")
        away = told.exists() and self.client_address[0] in told.read_text().split()
        body = sys.argv[1].encode() if away else b""
        self.send_response(200 if away else 404)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
http.server.ThreadingHTTPServer(("", 8000), Answer).serve_forever()
"""
"""A stand-in for machines' metadata, which tells the pods that it is told of."""


def sizes(cluster: OnCluster) -> list[int]:
    """Return the size of the world at each start of rank 0, the oldest first."""
    return [size for rank, size, _ in starts(cluster) if rank == 0]


def resumed(cluster: OnCluster) -> dict[int, int]:
    """Return the step at which each rank started again; a pod that is gone tells nothing."""
    return {rank: step for rank, _, step in starts(cluster) if step}


def restarts(cluster: OnCluster) -> int:
    return int(cluster.get("trainingjobs.lockstep.dev", JOB)["status"].get("restarts", 0))


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
    (role,) = cluster.get("trainingjobs.lockstep.dev", JOB)["spec"]["roles"]
    for pods in (2, 3):
        before = newest(cluster)
        patch = json.dumps({"spec": {"roles": [{**role, "replicas": pods}]}})
        cluster.kubectl("patch", "trainingjobs.lockstep.dev", JOB, "--type=merge", "-p", patch)
        cluster.wait(lambda n=pods: sizes(cluster)[-1] == n, 120, f"the world has {pods} ranks")
        first = [step for rank, size, step in starts(cluster) if (rank, size) == (0, pods)][-1]
        assert first >= before, "no step is lost"
        cluster.wait(lambda n=first: newest(cluster) > n + 5, 60, "the job steps")
    assert restarts(cluster) == 0


def cloud(cluster: OnCluster, image: str) -> str:
    """Start the stand-in for metadata and return its address."""
    main = {"name": "main", "image": image, "command": ["python3", "-c", CLOUD, NOTICE]}
    meta = {"name": "cloud"}
    spec = {"terminationGracePeriodSeconds": 0, "containers": [main]}
    cluster.apply({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})
    cluster.kubectl("wait", "pod/cloud", "--for=condition=Ready", "--timeout=120s")
    return f"http://{cluster.get('pod', 'cloud')['status']['podIP']}:8000/"


@pytest.mark.timeout(900)
def test_spot_notice_moves_a_rank_to_the_spare(cluster: OnCluster, torch_image: str) -> None:
    recovery = {"spares": 1, "spotNotice": cloud(cluster, torch_image)}
    cluster_training.submit(cluster, torch_image, 2, recovery=recovery)
    cluster.wait(lambda: len(ranks(cluster)) == 3, 120, "the spare stands by")
    cluster.wait(lambda: all(ranks(cluster).values()), 60, "the spare has a node")
    before = newest(cluster)
    address = cluster.get("pod", f"{JOB}-worker-1")["status"]["podIP"]
    cluster.kubectl("exec", "cloud", "--", "sh", "-c", f"echo {address} >/tmp/leaving")
    cluster.wait(lambda: len(resumed(cluster)) == 2, 120, "both ranks start again")
    assert len(set(resumed(cluster).values())) == 1
    assert min(resumed(cluster).values()) >= before, "both go on from memory"
    reached = newest(cluster)
    cluster.wait(lambda: newest(cluster) > reached + 5, 60, "the job steps")
    assert restarts(cluster) == 0, "a notice is no restart"
