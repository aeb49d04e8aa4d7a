"""How decisions grow with the cluster: gangs of whole GPUs and of shares, from 1,000 nodes on."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from bench.figure import Figure
from bench.scheduler_decisions import gang_of, timed
from lockstep.api.core import Node, Pod
from lockstep.api.names import DEVICES_ANNOTATION, GANG_LABEL, GPU, GPU_COMPUTE
from lockstep.api.wire import convert
from lockstep.scheduler.core.cycle.decider import Decider
from lockstep.scheduler.core.state.cluster import Cluster

ROUNDS = 3
MEMBERS = 64
GPUS_A_NODE = 8
SIZES = (1000, 5000, 15_000, 100_000)
LIMIT, LIMITED = 50.0, 15_000
"""Milliseconds for a decision, and the largest cluster for which that holds."""
DEVICES = json.dumps([{"index": n, "memory": 81_920} for n in range(GPUS_A_NODE)])


@dataclass(frozen=True, slots=True)
class Asked:
    """What each pod of a gang asks for."""

    name: str
    requests: dict[str, str] = field(default_factory=dict)


KINDS = (Asked("of 8 GPUs each", {GPU: "8"}), Asked("of half a GPU each", {GPU_COMPUTE: "50"}))


def cluster_of(nodes: int) -> Cluster:
    """Nodes of 8 GPUs, 16 under a leaf and 8 leaves under a spine."""
    cluster = Cluster()
    for number in range(nodes):
        cluster.set_node(node_of(number))
    return cluster


def node_of(number: int, cpu: int = 96) -> Node:
    name, leaf = f"node-{number}", number // 16
    labels = {"leaf": f"leaf-{leaf}", "spine": f"spine-{leaf // 8}", "kubernetes.io/hostname": name}
    told = {"name": name, "labels": labels, "annotations": {DEVICES_ANNOTATION: DEVICES}}
    amounts = {"cpu": str(cpu), "memory": "1Ti", "pods": "110", GPU: str(GPUS_A_NODE)}
    return convert({"metadata": told, "status": {"allocatable": amounts}}, Node)


def add_gang(cluster: Cluster, name: str, asked: Asked) -> None:
    cluster.set_gang(gang_of(name, MEMBERS, None))
    for number in range(MEMBERS):
        cluster.set_pod(_pod(f"{name}-{number}", name, asked))


def _pod(name: str, gang: str, asked: Asked) -> Pod:
    meta: dict[str, Any] = {"name": name, "namespace": "default", "uid": name}
    meta["labels"] = {GANG_LABEL: gang}
    container = {"name": "main", "resources": {"requests": {"cpu": "1", **asked.requests}}}
    spec = {"schedulerName": "lockstep", "containers": [container]}
    return convert({"metadata": meta, "spec": spec}, Pod)


def seconds(nodes: int, asked: Asked) -> tuple[float, float]:
    """Seconds to decide about a gang, and about one when a node has changed: each the best."""
    cluster = cluster_of(nodes)
    decider = Decider(cluster)
    add_gang(cluster, "first", asked)
    decider.decide(0.0)
    still, changed = [], []
    for number in range(ROUNDS):
        add_gang(cluster, f"still-{number}", asked)
        still.append(timed(lambda: decider.decide(1.0)))
        cluster.set_node(node_of(nodes - 1, cpu=95 - number))
        add_gang(cluster, f"changed-{number}", asked)
        changed.append(timed(lambda: decider.decide(1.0)))
    assert all(member.node for member in cluster.pods.values())
    return min(still), min(changed)


def run() -> list[Figure]:
    """Measure beside the limit, the best of three."""
    figures = []
    for asked in KINDS:
        for nodes in SIZES:
            still, changed = seconds(nodes, asked)
            limit = LIMIT if nodes <= LIMITED else None
            name = f"decide a gang of {MEMBERS} pods {asked.name}, {nodes} nodes"
            figures.append(Figure(name, still * 1e3, "ms", "lower", limit=limit))
            figures.append(
                Figure("  after a node has changed", changed * 1e3, "ms", "lower", limit=limit)
            )
    return figures
