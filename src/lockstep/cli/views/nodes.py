"""Nodes as rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable

from lockstep.api import names
from lockstep.api.core import Node, Pod
from lockstep.cli.views import amounts
from lockstep.cli.views.table import NAMED, Cells, Column, Table, age, place, rows


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

    def held(node: Node) -> list[Pod]:
        return placed.get(node.metadata.name, [])

    def share(resource: str) -> Callable[[Node], str]:
        return lambda node: _share(node, held(node), resource)

    def label(name: str) -> Callable[[Node], str]:
        return lambda node: node.metadata.labels.get(name, "")

    def tier(name: str) -> Callable[[Node], str]:
        def of(node: Node) -> str:
            labels = node.metadata.labels
            found = any(key.startswith(names.TIER_LABEL) for key in labels)
            return labels.get(f"{names.TIER_LABEL}{name}" if found else name, "")

        return of

    cells: Cells[Node] = (
        NAMED,
        ("Status", status),
        ("Kind", label(names.NODE_KIND_LABEL)),
        (Column("GPUs used", number=True), share(names.GPU)),
        (Column("GPUs free", number=True), lambda node: _free(node, held(node))),
        (Column("GPU model", wide=True), label(names.GPU_MODEL_LABEL)),
        (Column("CPU", number=True), share(names.CPU)),
        (Column("Memory", number=True), share(names.MEMORY)),
        (Column("Pods", number=True), lambda node: len(held(node))),
        ("Spine", tier(names.SPINE_LABEL)),
        ("Leaf", tier(names.LEAF_LABEL)),
        (Column("Age", wide=True), age(now)[1]),
    )
    return rows(sorted(nodes, key=place), cells)


def _free(node: Node, pods: list[Pod]) -> int | None:
    gpus = amounts.allocatable(node, names.GPU)
    return gpus - amounts.total(pods, names.GPU) if gpus else None


def _share(node: Node, pods: list[Pod], resource: str) -> str:
    whole = amounts.allocatable(node, resource)
    used = amounts.show(amounts.total(pods, resource), resource)
    return "" if resource == names.GPU and not whole else f"{used}/{amounts.show(whole, resource)}"
