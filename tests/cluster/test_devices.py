"""Cards through the kubelet: handed out whole and in shares, measured, fenced when they break."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.support import cluster_cards
from tests.support.on_cluster import OnCluster
from tests.support.stub_gpus import StubGpus

from lockstep.api.names import NODES_NAMESPACE

Json = dict[str, Any]
AGENTS = "app.kubernetes.io/component=agent"
CARDS = 8
SHOW = "echo cards $CUDA_VISIBLE_DEVICES; ls /dev | grep -c '^nvidia[0-9]'; sleep 100000"


def pod(name: str, spec: Json, **meta: Any) -> Json:
    whole = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, **spec}
    about = {"name": name, **meta}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": about, "spec": whole}


def whole(image: str, name: str, node: str, gpus: int) -> Json:
    """Return a pod with whole cards of one node, placed by Lockstep."""
    main = {
        "name": "main",
        "image": image,
        "command": ["sh", "-c", SHOW],
        "resources": {"limits": {"nvidia.com/gpu": gpus}},
    }
    chosen = {"nodeSelector": {"kubernetes.io/hostname": node}, "schedulerName": "lockstep"}
    return pod(name, {**chosen, "containers": [main]})


def given(cluster: OnCluster, name: str) -> set[str]:
    """Return the cards that a pod was told of, once it has said so."""
    cluster.wait(lambda: len(cluster.logs(name).splitlines()) >= 2, 120, f"{name} says its cards")
    told, count = cluster.logs(name).splitlines()[:2]
    found = set(told.removeprefix("cards ").split(","))
    assert int(count) == len(found), "device files of its own cards alone"
    return found


@pytest.mark.timeout(600)
def test_cards_stay_over_restarts_of_agent_and_kubelet(
    cluster: OnCluster, cards: dict[str, StubGpus]
) -> None:
    node, image = next(iter(cards)), cluster.own_image()
    known = {cluster_cards.uuid(1, number) for number in range(CARDS)}
    cluster.apply(whole(image, "first", node, 5))
    first = given(cluster, "first")
    assert len(first) == 5
    assert first < known
    selector = ("-l", AGENTS, "--field-selector", f"spec.nodeName={node}")
    cluster.cluster.kubectl("-n", NODES_NAMESPACE, "delete", "pods", *selector, "--force")
    cluster.wait(lambda: agent_ready(cluster, node), 120, "another agent serves the node")
    end(node, "kubelet", cluster)
    cluster.wait(
        lambda: cluster_cards.allocatable(cluster.cluster, node) == "8",
        120,
        "kubelet has its cards again",
    )
    cluster.apply(whole(image, "second", node, 3), whole(image, "third", node, 1))
    second = given(cluster, "second")
    assert second == known - first
    waits = cluster.get("pod", "third")
    assert not waits["spec"].get("nodeName"), "no card is free"


def offered(cluster: OnCluster, node: str) -> int:
    return int(cluster_cards.allocatable(cluster.cluster, node))


def agent_ready(cluster: OnCluster, node: str) -> bool:
    words = ("-l", AGENTS, "--field-selector", f"spec.nodeName={node}")
    shown = ("-o", "jsonpath={.items[*].status.containerStatuses[*].ready}")
    told = cluster.cluster.kubectl("-n", NODES_NAMESPACE, "get", "pods", *words, *shown)
    return told.split() == ["true"]


def end(node: str, program: str, cluster: OnCluster) -> None:
    """Kill a program of a node, which starts it again."""
    first, _ = cluster.cluster.record.processes[node]
    for task in Path("/proc").glob("[0-9]*/status"):
        text = task.read_text()
        inside = f"Name:\t{program}\n" in text and _ancestor(int(task.parent.name), first)
        if inside:
            os.kill(int(task.parent.name), signal.SIGKILL)


def _ancestor(process: int, wanted: int) -> bool:
    while process > 1:
        if process == wanted:
            return True
        process = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    return False


TENANT = "/tenant/tenant"
OURS = {"lockstep.dev/gpu-memory": "8Gi", "lockstep.dev/gpu-compute": "50"}
HAMI = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "8192", "nvidia.com/gpucores": "50"}


HOLD_AND_KILL = f"""
{TENANT} info
{TENANT} alloc 7000 plain hold > /tmp/first & first=$!
until grep -q holding /tmp/first; do sleep 0.1; done
echo first $(cat /tmp/first)
echo beside $({TENANT} alloc 7000 plain)
kill -9 $first; wait $first 2>/dev/null
until {TENANT} alloc 7000 plain | grep -q SUCCESS; do sleep 0.1; done
echo after
sleep 100000
"""


def share(image: str, limits: Json, script: str) -> Json:
    """Return a pod with a share of a card that runs the tenant."""
    main = {
        "name": "main",
        "image": image,
        "command": ["sh", "-c", script],
        "resources": {"limits": limits},
        "volumeMounts": [{"name": "tenant", "mountPath": "/tenant"}],
    }
    built = {"name": "tenant", "hostPath": {"path": str(cluster_cards.built())}}
    return pod("tenant", cluster_cards.mounted({"containers": [main], "volumes": [built]}))


@pytest.mark.timeout(600)
@pytest.mark.parametrize("limits", [OURS, HAMI], ids=["ours", "hami"])
def test_shares_hold_memory_and_killed_processes_give_theirs_back(
    cluster: OnCluster, cards: dict[str, StubGpus], limits: Json
) -> None:
    cluster.apply(share(cluster.own_image(), limits, HOLD_AND_KILL))
    assert cards
    cluster.wait(lambda: "after" in cluster.logs("tenant"), 180, "the killed one's memory is back")
    said = cluster.logs("tenant").splitlines()
    assert [one for one in said if one != "Killed"] == [
        "info 8192 8192",  # the tenant sees its share alone
        "first alloc plain CUDA_SUCCESS holding",
        "beside alloc plain CUDA_ERROR_OUT_OF_MEMORY",
        "after",
    ]
