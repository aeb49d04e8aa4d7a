"""Nodes as rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from lockstep.api import names
from lockstep.api.core import Node, Pod
from lockstep.cli.views import amounts
from lockstep.cli.views.table import Column, Table, table
from lockstep.cli.views.times import ago

COLUMNS = (
    "Name",
    "Status",
    "Kind",
    Column("GPUs used", number=True),
    Column("GPUs free", number=True),
    Column("GPU model", wide=True),
    Column("CPU", number=True),
    Column("Memory", number=True),
    Column("Pods", number=True),
    "Spine",
    "Leaf",
    Column("Age", wide=True),
)


def status(node: Node) -> str:
    """Return in one word, or two, whether the node takes pods."""
    ready = next((c for c in node.status.conditions if c.type == "Ready"), None)
    word = "Ready" if ready is not None and ready.status == "True" else "NotReady"
    return f"{word},Cordoned" if node.spec.unschedulable else word


def by_node(pods: Iterable[Pod]) -> dict[str, list[Pod]]:
    """Return the pods that take room, by node."""
    placed: dict[str, list[Pod]] = defaultdict(list)
    for pod in pods:
        if amounts.holds(pod):
            placed[pod.spec.node_name].append(pod)
    return placed


def node_table(nodes: Iterable[Node], pods: Iterable[Pod], now: float) -> Table:
    """Return the nodes as a table, by name."""
    placed = by_node(pods)
    ordered = sorted(nodes, key=lambda node: natural(node.metadata.name))
    return table(COLUMNS, (_row(node, placed.get(node.metadata.name, []), now) for node in ordered))


def natural(name: str) -> list[tuple[int, str]]:
    """Return a sort key by which ``node-2`` comes before ``node-10``."""
    parts: list[tuple[int, str]] = []
    digits = ""
    for char in f"{name}\0":
        if char.isdecimal():
            digits += char
            continue
        if digits:
            parts.append((int(digits), ""))
            digits = ""
        parts.append((-1, char))
    return parts


def _row(node: Node, pods: list[Pod], now: float) -> tuple[object, ...]:
    labels = node.metadata.labels
    gpus = amounts.allocatable(node, names.GPU)
    used = amounts.total(pods, names.GPU)
    return (
        node.metadata.name,
        status(node),
        labels.get(names.NODE_KIND_LABEL, ""),
        f"{used}/{gpus}" if gpus else None,
        gpus - used if gpus else None,
        labels.get(names.GPU_MODEL_LABEL, ""),
        _share(node, pods, names.CPU),
        _share(node, pods, names.MEMORY),
        len(pods),
        labels.get(names.SPINE_LABEL, ""),
        labels.get(names.LEAF_LABEL, ""),
        ago(node.metadata.creation_timestamp, now),
    )


def _share(node: Node, pods: list[Pod], resource: str) -> str:
    used = amounts.show(amounts.total(pods, resource), resource)
    return f"{used}/{amounts.show(amounts.allocatable(node, resource), resource)}"
