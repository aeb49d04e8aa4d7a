"""Decisions alone: no API server, only the scheduler's core over its arrays."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

from bench.figure import Figure
from lockstep.api.core import Node, Pod
from lockstep.api.gang import Gang
from lockstep.api.wire import convert
from lockstep.scheduler.core.cycle.decider import Decider
from lockstep.scheduler.core.explain.diagnosis import explain
from lockstep.scheduler.core.state.cluster import Cluster

ROUNDS = 3


def cluster_of(nodes: int, *, per_leaf: int = 16, leaves_per_spine: int = 8) -> Cluster:
    """A cluster of 8-GPU nodes, 16 a leaf and 8 leaves a spine."""
    cluster = Cluster()
    for i in range(nodes):
        leaf = i // per_leaf
        labels = {"leaf": f"leaf-{leaf}", "spine": f"spine-{leaf // leaves_per_spine}"}
        capacity = {"cpu": "96", "memory": "1Ti", "pods": "110", "nvidia.com/gpu": "8"}
        cluster.set_node(
            convert(
                {
                    "metadata": {
                        "name": f"node-{i}",
                        "labels": {**labels, "kubernetes.io/hostname": f"node-{i}"},
                    },
                    "status": {"allocatable": capacity},
                },
                Node,
            )
        )
    return cluster


def pod_of(name: str, *, gpus: int, gang: str = "") -> Pod:
    return convert(
        {
            "metadata": {
                "name": name,
                "namespace": "default",
                "uid": name,
                "labels": {"lockstep.dev/gang": gang} if gang else {},
            },
            "spec": {
                "schedulerName": "lockstep",
                "containers": [
                    {
                        "name": "main",
                        "resources": {"requests": {"cpu": "1", "nvidia.com/gpu": str(gpus)}},
                    }
                ],
            },
        },
        Pod,
    )


def gang_of(name: str, members: int, tier: str | None) -> Gang:
    spec = {"minMember": members, "topology": {"required": tier} if tier else None}
    return convert({"metadata": {"name": name, "namespace": "default"}, "spec": spec}, Gang)


def add_gang(cluster: Cluster, name: str, members: int, gpus: int, tier: str | None) -> None:
    cluster.set_gang(gang_of(name, members, tier))
    for i in range(members):
        cluster.set_pod(pod_of(f"{name}-{i}", gpus=gpus, gang=name))


def timed(work: Callable[[], object]) -> float:
    gc.collect()
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def gang_seconds(nodes: int, members: int) -> float:
    """Seconds from a complete gang to all of its places, one GPU a pod, under one spine.

    The scheduler has decided before: what it keeps from then on, such as the order of names, is
    there. The gang's own shape is new.
    """
    cluster = cluster_of(nodes)
    decider = Decider(cluster)
    add_gang(cluster, "first", 2, 4, "leaf")
    decider.decide(0.0)
    add_gang(cluster, "gang", members, 1, "spine")
    seconds = timed(lambda: decider.decide(0.0))
    assert sum(bool(m.node) for m in cluster.pods.values()) == members + 2
    return seconds


def single_rate(nodes: int, pods: int) -> float:
    """Single pods decided a second."""
    cluster = cluster_of(nodes)
    for i in range(pods):
        cluster.set_pod(pod_of(f"pod-{i}", gpus=1))
    decider = Decider(cluster)
    return pods / timed(lambda: decider.decide(0.0, limit=pods))


def verdict_seconds(nodes: int) -> float:
    """Seconds to find that a gang does not fit a full cluster, and to say why."""
    cluster = cluster_of(nodes)
    add_gang(cluster, "full", nodes, 8, None)
    decider = Decider(cluster)
    decider.decide(0.0)
    add_gang(cluster, "late", 64, 8, "spine")

    def look() -> None:
        assert decider.decide(1.0).failed
        late = next(u for u in cluster.workloads.values() if u.key.name == "late")
        assert explain(cluster, late).reason == "NotEnoughRoom"

    return timed(look)


def run() -> list[Figure]:
    """Measure beside the bars, the best of three: what else the machine does is not the subject.

    Nobody publishes decision times without the API server's share, so there are no peers.
    """
    figures = [
        Figure(
            f"decide a gang of 512 under one spine, {nodes} nodes",
            min(gang_seconds(nodes, 512) for _ in range(ROUNDS)) * 1e3,
            "ms",
            "lower",
            limit=limit,
        )
        for nodes, limit in ((1000, 20.0), (5000, 20.0), (15000, 50.0))
    ]
    figures += [
        Figure(
            f"decide 5000 single pods, {nodes} nodes",
            max(single_rate(nodes, 5000) for _ in range(ROUNDS)),
            "pods/s",
        )
        for nodes in (1000, 5000)
    ]
    figures += [
        Figure(
            f"say why a gang does not fit, {nodes} full nodes",
            min(verdict_seconds(nodes) for _ in range(ROUNDS)) * 1e3,
            "ms",
            "lower",
            limit=100.0,
        )
        for nodes in (500, 5000)
    ]
    return figures
