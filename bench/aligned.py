"""Gangs whose pods take a NIC under the PCIe root of each GPU: decisions alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from bench.figure import Figure
from bench.scheduler_decisions import gang_of, timed
from lockstep.api.core import Node, Pod
from lockstep.api.names import (
    ALIGN_REQUIRED_ANNOTATION,
    DEVICES_ANNOTATION,
    GANG_LABEL,
    GPU,
    GPUS_ANNOTATION,
    NICS,
)
from lockstep.api.wire import convert
from lockstep.scheduler.core.cycle.decider import Decider
from lockstep.scheduler.core.state.cluster import Cluster

ROUNDS = 3
NODES = 15_000
MEMBERS = 512
LIMIT = 50.0
WORN = 3
"""Of so many nodes one is partly in use."""


class Asked(NamedTuple):
    """So many pods, and the GPUs and NICs that each takes under one PCIe root."""

    pods: int
    gpus: int
    nics: int


KINDS: tuple[tuple[str, tuple[Asked, ...]], ...] = (
    ("1 GPU + 1 NIC", (Asked(MEMBERS, 1, 1),)),
    ("1 + 1 and 2 + 1", (Asked(MEMBERS // 2, 1, 1), Asked(MEMBERS // 2, 2, 1))),
    ("3 GPUs + 2 NICs", (Asked(MEMBERS, 3, 2),)),
)


def _node(number: int, devices: str) -> Node:
    leaf = number // 16
    labels = {"leaf": f"leaf-{leaf}", "spine": f"spine-{leaf // 8}"}
    capacity = {"cpu": "96", "memory": "1Ti", "pods": "110", GPU: "8", NICS: "4"}
    name = f"node-{number}"
    meta = {
        "name": name,
        "labels": {**labels, "kubernetes.io/hostname": name},
        "annotations": {DEVICES_ANNOTATION: devices},
    }
    return convert({"metadata": meta, "status": {"allocatable": capacity}}, Node)


def _pod(name: str, one: Asked, *, gang: str = "", on: str = "", held: Sequence[int] = ()) -> Pod:
    told = {ALIGN_REQUIRED_ANNOTATION: "pcie"} if one.nics else {}
    if held:
        told[GPUS_ANNOTATION] = ",".join(map(str, held))
    asked = {"cpu": "1", GPU: str(one.gpus), NICS: str(one.nics)}
    meta: dict[str, Any] = {"name": name, "namespace": "default", "uid": name, "annotations": told}
    meta["labels"] = {GANG_LABEL: gang} if gang else {}
    container = {"name": "main", "resources": {"requests": asked}}
    spec = {"schedulerName": "lockstep", "nodeName": on, "containers": [container]}
    return convert({"metadata": meta, "spec": spec}, Pod)


def worn_cluster(nodes: int) -> Cluster:
    """Nodes of 8 GPUs with two and a NIC to each PCIe root; in every third some GPUs are in use."""
    devices: list[dict[str, Any]] = [
        {"index": i, "nvlink": 0, "numa": i // 4, "pcie": i // 2} for i in range(8)
    ]
    devices += [{"index": i, "kind": "nic", "numa": i // 2, "pcie": i} for i in range(4)]
    told, cluster = json.dumps(devices), Cluster()
    for i in range(nodes):
        cluster.set_node(_node(i, told))
    for i in range(0, nodes, WORN):
        mask = i // WORN % 255 + 1
        held = [gpu for gpu in range(8) if mask >> gpu & 1]
        cluster.set_pod(_pod(f"held-{i}", Asked(1, len(held), 0), on=f"node-{i}", held=held))
    return cluster


def aligned_seconds(kinds: Sequence[Asked], nodes: int = NODES) -> float:
    """Seconds from a complete gang of such pods to all of its places; its shapes are new."""
    cluster = worn_cluster(nodes)
    decider = Decider(cluster)
    cluster.set_pod(_pod("first", Asked(1, 2, 1)))
    decider.decide(0.0)
    cluster.set_gang(gang_of("gang", sum(one.pods for one in kinds), None))
    for number, one in enumerate(kinds):
        for i in range(one.pods):
            cluster.set_pod(_pod(f"gang-{number}-{i}", one, gang="gang"))
    seconds = timed(lambda: decider.decide(0.0))
    members = [pod for (_, name), pod in cluster.pods.items() if name.startswith("gang-")]
    assert all(pod.node and pod.grant.nics for pod in members)
    return seconds


def run() -> list[Figure]:
    """Measure beside the bar, the best of three."""
    return [
        Figure(
            f"decide a gang of 512 pods x {words} under a PCIe root, {NODES} nodes",
            min(aligned_seconds(kinds) for _ in range(ROUNDS)) * 1e3,
            "ms",
            "lower",
            limit=LIMIT,
        )
        for words, kinds in KINDS
    ]
