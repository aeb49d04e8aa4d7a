"""Small clusters whose cards are shared, and a decision on them."""

from __future__ import annotations

from typing import Any

from tests.support.drawn import node, pod

from lockstep.api.core import Pod
from lockstep.scheduler.core.cycle.decider import Decider
from lockstep.scheduler.core.state.cluster import Cluster
from lockstep.scheduler.core.util.bitmask import indices_of

CARDS = 4


def share(name: str, compute: int = 0, memory: int = 0, cards: int = 1, **more: Any) -> Pod:
    """A pod with a share of *cards* GPUs: hundredths of compute and MiB of each."""
    requests = {
        "lockstep.dev/gpu-cards": cards,
        "lockstep.dev/gpu-compute": compute,
        "lockstep.dev/gpu-memory": memory,
    }
    return pod(name, requests=requests, **more)


def cluster_of(*names: str, memory: int = 1000, **more: Any) -> Cluster:
    cluster = Cluster()
    devices = [{"index": i, "memory": memory, "nvlink": i // 2} for i in range(CARDS)]
    for name in names:
        cluster.set_node(node(name, gpus=CARDS, devices=devices, **more))
    return cluster


def cards(cluster: Cluster, name: str) -> tuple[str, tuple[int, ...]]:
    member = cluster.pods["default", name]
    return member.node, indices_of(member.gpus)


def decide(cluster: Cluster, *pods: Pod) -> list[tuple[str, tuple[int, ...]]]:
    """Let pods come one after the other; return where each went."""
    decider = Decider(cluster)
    for one in pods:
        cluster.set_pod(one)
        decider.decide(0.0)
    return [cards(cluster, one.metadata.name) for one in pods]
