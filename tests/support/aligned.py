"""Nodes whose devices are described, and pods that want theirs close together."""

from __future__ import annotations

from typing import Any

from tests.support.drawn import node, pod

from lockstep.api.core import Node, Pod
from lockstep.scheduler.core.cycle.decider import Decider
from lockstep.scheduler.core.state.cluster import Cluster
from lockstep.scheduler.core.util.bitmask import indices_of


def machine(name: str, *, nics: int = 8, cpu: int = 64, **more: Any) -> Node:
    """A node with 8 GPUs: NVLink in halves, a root for each two with two NICs, two sockets."""
    devices = [{"index": i, "nvlink": i // 4, "numa": i // 4, "pcie": i // 2} for i in range(8)]
    devices += [
        {"index": i, "kind": "nic", "numa": i // 4, "pcie": i // 2, "name": f"mlx5_{i}"}
        for i in range(nics)
    ]
    sockets = [{"index": i, "cpus": cpu // 2, "memory": "256Gi"} for i in range(2)]
    return node(name, cpu=cpu, **({"devices": devices, "numa_nodes": sockets} | more))


def aligned(name: str, gpus: int, nics: int = 0, cpu: int = 0, **more: Any) -> Pod:
    """A pod that requires (``must``) or prefers (``may``) its devices to be aligned."""
    told = {"lockstep.dev/align-required": more.pop("must", "")}
    told |= {"lockstep.dev/align-preferred": more.pop("may", "")}
    told = {key: value for key, value in told.items() if value} | more.pop("annotations", {})
    requests = {"lockstep.dev/nics": nics, **more.pop("requests", {})}
    return pod(name, gpus=gpus, cpu=cpu, requests=requests, annotations=told, **more)


def placed(cluster: Cluster, *pods: Pod) -> dict[str, tuple[str, str, str, int]]:
    """Let pods come one after the other; return by pod its node, GPUs, NICs and NUMA node."""
    decider = Decider(cluster)
    for one in pods:
        cluster.set_pod(one)
        decider.decide(0.0)
    return {name: shown(cluster, name) for name in (one.metadata.name for one in pods)}


def shown(cluster: Cluster, name: str) -> tuple[str, str, str, int]:
    """Return a pod's node, GPUs, NICs and NUMA node."""
    member = cluster.pods["default", name]
    gpus, nics = ("".join(map(str, indices_of(mask))) for mask in member.grant[:2])
    return member.node, gpus, nics, member.grant.socket


def cluster_of(*nodes: Node) -> Cluster:
    cluster = Cluster()
    for one in nodes:
        cluster.set_node(one)
    return cluster
