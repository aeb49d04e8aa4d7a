"""Drawn clusters with queues, and gangs that are submitted to those."""

from __future__ import annotations

from typing import Any

from tests.support.drawn import Drawn, add, draw, draw_gang, places, queue

from lockstep.api.names import GPU
from lockstep.scheduler.core.state.cluster import Cluster

WIDE = "s/l: a:8 b:8 c:8 d:8"


def cluster_with(drawing: str, queues: dict[str, dict[str, Any]]) -> Cluster:
    cluster = draw(Cluster(), drawing)
    for name, spec in queues.items():
        cluster.set_queue(queue(name, **spec))
    return cluster


def submit(cluster: Cluster, text: str, name: str, age: int = 0) -> Drawn:
    drawn = draw_gang(text, created=f"2026-01-01T00:{age // 60:02}:{age % 60:02}Z", queue=name)
    add(cluster, drawn)
    return drawn


def gpus(amount: int) -> dict[str, int]:
    return {GPU: amount}


def placed(cluster: Cluster) -> set[str]:
    return {name.partition("-")[0] for name in places(cluster)}
