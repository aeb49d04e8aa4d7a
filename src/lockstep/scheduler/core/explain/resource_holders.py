"""The holders of what others wait for."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from lockstep.api.names import GPU, GPU_CARDS, GPU_COMPUTE, GPU_MEMORY
from lockstep.scheduler.core.model.workload import Member, WorkloadKey
from lockstep.scheduler.core.resources import wording
from lockstep.scheduler.core.state.cluster import Cluster
from lockstep.scheduler.core.util.array_types import IntArray

NODES_LOOKED_AT = 512
"""Over more nodes no workload in particular is in the way, and the answer would cost too much."""
NAMED = 3
"""Holders named; the rest is summed up."""
OF_CARDS = (GPU, GPU_COMPUTE, GPU_MEMORY)
"""Resources that a pod with a card, whole or in part, keeps from others."""


@dataclass(slots=True)
class _Held:
    """What some pods hold of one resource."""

    amounts: Counter[str] = field(default_factory=Counter)
    parts: dict[int, int] = field(default_factory=dict)
    """By the row of a node the mask of the GPUs of which it has shares: shares of one card are
    parts of one."""

    def add(self, member: Member, row: int, resource: str) -> None:
        """Count what a pod holds on the node in a row."""
        shape = member.shape
        name = GPU if resource in OF_CARDS else resource
        self.amounts[name] += shape.request.get(name, 0)
        if name == GPU and shape.share is not None:
            self.parts[row] = self.parts.get(row, 0) | member.grant.gpus

    def include(self, other: _Held) -> None:
        """Count all that others hold."""
        self.amounts += other.amounts
        for row, mask in other.parts.items():
            self.parts[row] = self.parts.get(row, 0) | mask

    @property
    def total(self) -> int:
        """Return how much it is; a card in part counts as one."""
        return self.amounts.total() + self._cards

    @property
    def _cards(self) -> int:
        return sum(mask.bit_count() for mask in self.parts.values())

    def __str__(self) -> str:
        """Return it as people read it: ``8 GPUs``, ``parts of 2 GPUs``."""
        held = {name: amount for name, amount in self.amounts.items() if amount}
        return wording.request(held | ({GPU_CARDS: self._cards} if self._cards else {}))


def holders(cluster: Cluster, rows: IntArray, resource: str, asking: WorkloadKey) -> str:
    """Return in words which workloads hold a resource on some nodes, the largest first.

    Only what lives in the namespace of the workload that asks is named: a user learns
    nothing of other users."""
    if len(rows) > NODES_LOOKED_AT:
        return ""
    held: defaultdict[str, _Held] = defaultdict(_Held)
    rest, elsewhere = _Held(), _Held()
    for row in map(int, rows):
        for member in cluster.on_node(cluster.table.name(row)):
            own = member.namespace == asking.namespace
            (held[_name(member, asking)] if own else elsewhere).add(member, row, resource)
    ranked = sorted(
        ((name, one) for name, one in held.items() if one.total),
        key=lambda item: (-item[1].total, item[0]),
    )
    for _, one in ranked[NAMED:]:
        rest.include(one)
    summed = (("others", rest), ("other namespaces", elsewhere))
    told = [*ranked[:NAMED], *((name, one) for name, one in summed if one.total)]
    parts = [f"{name} ({one})" for name, one in told]
    return f"held by {wording.listing(parts)}" if parts else ""


def _name(member: Member, asking: WorkloadKey) -> str:
    workload = member.workload
    if workload == asking:
        return "its own members"
    return f"gang {workload.name}" if workload and workload.kind == "Gang" else f"pod {member.name}"
