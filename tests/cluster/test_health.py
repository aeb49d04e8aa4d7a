"""A line of a node's kernel log fences a card; the gang moves; the node returns once checked."""

from __future__ import annotations

import json

import pytest
from tests.support import cluster_cards
from tests.support.on_cluster import OnCluster
from tests.support.stub_gpus import StubGpus

from lockstep.api.claims import DRIVER

JOB = "moved"
XID = "NVRM: Xid (PCI:0000:17:00): 79, pid=1, GPU has fallen off the bus.\n"
"""Of card 0, as the driver writes it."""


def running(cluster: OnCluster) -> set[str]:
    """Return the nodes of the pods that run."""
    return {
        pod["spec"]["nodeName"]
        for pod in cluster.pods(f"lockstep.dev/job={JOB}")
        if pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]
    }


def fenced(cluster: OnCluster, node: str) -> list[str]:
    return list(cluster.get("nodehealth", node).get("status", {}).get("fenced", []))


def tainted(cluster: OnCluster, node: str) -> list[int]:
    """Return the cards of a node that claims do not get."""
    devices = cluster.get("resourceslice", f"{node}-{DRIVER}")["spec"]["devices"]
    return [one["attributes"]["index"]["int"] for one in devices if one.get("taints")]


def given(cluster: OnCluster, node: str) -> str:
    return cluster_cards.allocatable(cluster.cluster, node)


@pytest.mark.timeout(900)
def test_kernel_line_moves_the_gang_until_checks_pass(
    cluster: OnCluster, cards: dict[str, StubGpus]
) -> None:
    cluster.apply(cluster_cards.gang(JOB, cluster.own_image(), 2, 8))
    before = cluster.wait(lambda: len(found := running(cluster)) == 2 and found, 120, "it runs")
    ill = sorted(before)[0]
    with cluster_cards.kernel_log(cluster.cluster, ill).open("a") as log:
        log.write(XID)
    cluster.wait(lambda: fenced(cluster, ill) == ["gpu/0"], 60, "the card is fenced")
    cluster.wait(lambda: running(cluster) == set(cards) - {ill}, 120, "the gang runs elsewhere")
    cluster.wait(lambda: given(cluster, ill) == "7", 60, "its kubelet gives the other cards alone")
    assert tainted(cluster, ill) == [0]
    job = cluster.get("trainingjobs.lockstep.dev", JOB)
    assert job["status"].get("restarts", 0) == 0, "it is not the job's fault"
    # An administrator says that it is mended; the agent's checks have to say so too.
    over = json.dumps({"spec": {"findings": []}})
    cluster.kubectl("patch", "nodehealth", ill, "--type=merge", "-p", over)
    cluster.wait(lambda: not fenced(cluster, ill), 240, "the fence goes once checks have passed")
    checked = cluster.get("nodehealth", ill)["spec"]["checked"]["results"]
    states = {one["name"]: one["state"] for one in checked if not one.get("device")}
    assert states == {"matmul": "ok", "memory": "ok", "disk": "ok"}
    cluster.wait(lambda: given(cluster, ill) == "8", 60, "its kubelet gives all cards again")
