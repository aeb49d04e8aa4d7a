"""What is said of pods whose devices cannot be aligned as they ask."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.aligned import aligned, cluster_of, machine, placed
from tests.support.drawn import gang, node, pod

from lockstep.scheduler.core.cycle.decider import Decider
from lockstep.scheduler.core.explain.diagnosis import explain
from lockstep.scheduler.core.model.workload import WorkloadKey

REASONS = [
    # what is shown, GPUs in use, the nodes' other fields, the pod, words of the reason
    (
        "devices are free and not aligned",
        "0,4",
        {},
        {"gpus": 4, "must": "nvlink"},
        "needs 1 pod x 4 GPUs aligned by nvlink; the cluster has room for 0 of 1 now: 1 pod "
        "(4 GPUs) short; there 1 node with room whose free devices are not aligned as required; "
        "with its devices' alignment preferred instead of required, 1 node would have room for "
        "such a pod and it would start now",
    ),
    (
        "no node could ever do it",
        "",
        {},
        {"gpus": 6, "must": "nvlink"},
        "a pod asks for 6 GPUs aligned by nvlink; no node can give it its devices like that, "
        "even empty",
    ),
    (
        "the node says nothing of its NUMA nodes",
        "",
        {"numa_nodes": []},
        {"gpus": 1, "cpu": 1, "must": "numa"},
        "1 node is without lockstep.dev/numa-nodes",
    ),
    (
        "what the node says cannot be read",
        "",
        {"devices": [{"index": "zero"}]},
        {"gpus": 2, "must": "nvlink"},
        "without lockstep.dev/devices that can be read "
        '(lockstep.dev/devices[0].index is "zero": Expected `int`, got `str`)',
    ),
    (
        "a word that is no relation",
        "",
        {},
        {"gpus": 2, "must": "nvlink,pci"},
        "pod p asks for its devices to be aligned by pci; there are numa, nvlink and pcie",
    ),
]


@pytest.mark.parametrize("case", REASONS, ids=[c[0] for c in REASONS])
def test_reasons(case):
    _, held, fields, asked, words = case
    cluster = cluster_of(machine("n", **fields))
    if held:
        count = len(held.split(","))
        cluster.set_pod(pod("other", gpus=count, on="n", held=held, phase="Running"))
    assert placed(cluster, aligned("p", **asked))["p"][0] == ""
    verdict = explain(cluster, cluster.workloads[WorkloadKey("Pod", "default", "p")])
    assert words in verdict.message


def test_the_remedy_named_for_missing_alignment_helps():
    cluster = cluster_of(machine("n"))
    cluster.set_pod(pod("other", gpus=2, on="n", held="0,4", phase="Running"))
    placed(cluster, aligned("p", 4, must="nvlink"))
    verdict = explain(cluster, cluster.workloads[WorkloadKey("Pod", "default", "p")])
    assert "alignment preferred instead of required" in verdict.remedy
    assert placed(cluster, aligned("p", 4, may="nvlink"))["p"][0] == "n"


@pytest.mark.parametrize(
    ("gpus_in_use", "asked", "helps"),
    [
        (0, {"gpus": 6, "must": "nvlink"}, True),
        (4, {"gpus": 6, "must": "nvlink"}, False),
        (0, {"gpus": 1, "requests": {"memory": "300Gi"}, "must": "numa"}, True),
    ],
    ids=["it would start", "there is no room even then", "memory of one NUMA node"],
)
def test_a_preferred_alignment_is_named_only_where_it_helps(
    gpus_in_use: int, asked: dict[str, Any], helps: bool
):
    cluster = cluster_of(machine("n"))
    if gpus_in_use:
        held = ",".join(map(str, range(gpus_in_use)))
        cluster.set_pod(pod("other", gpus=gpus_in_use, on="n", held=held, phase="Running"))
    assert placed(cluster, aligned("p", **asked))["p"][0] == ""
    verdict = explain(cluster, cluster.workloads[WorkloadKey("Pod", "default", "p")])
    assert verdict.reason == "NotAlignable"
    assert ("alignment preferred" in verdict.remedy) == helps
    assert verdict.remedy
    asked = asked | {"may": asked["must"], "must": ""}
    assert (placed(cluster, aligned("p", **asked))["p"][0] == "n") == helps


def test_more_nics_than_a_node_counts_are_refused_in_words():
    cluster = cluster_of(node("n", gpus=4, extended={"lockstep.dev/nics": 2}))
    for number in range(4):
        cluster.set_pod(aligned(f"p{number}", 1, 2, gang="g"))
    cluster.set_gang(gang("g", minMember=4))
    Decider(cluster).decide(0.0)
    reason = explain(cluster, cluster.workloads[WorkloadKey("Gang", "default", "g")])
    assert reason is not None
    assert "needs 4 pods x 1 GPU, 2 NICs; the cluster has room for 1 of 4" in reason.message
