"""What each queue holds and what waits in it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from lockstep.api.names import CPU, MEMORY, PODS, QUEUE_LABEL
from lockstep.scheduler.core.cluster import Cluster
from lockstep.scheduler.core.resources import is_port
from lockstep.scheduler.core.units import Member, Unit

DEFAULT = "default"
"""The queue of whatever names none."""


@dataclass(slots=True)
class Usage:
    """Units of one queue by how far they are, and what those with nodes take."""

    pending: int = 0
    placed: int = 0
    used: dict[str, int] = field(default_factory=dict)

    def status(self, before: dict[str, Any]) -> dict[str, Any]:
        """Return what to write into a queue's status; resources of *before* not used now go."""
        now: dict[str, Any] = dict.fromkeys(before)
        now |= {name: _quantity(name, amount) for name, amount in sorted(self.used.items())}
        return {"pending": self.pending, "running": self.placed, "used": now}


def by_queue(cluster: Cluster) -> dict[str, Usage]:
    """Return the usage of every queue that anything is in."""
    found: dict[str, Usage] = defaultdict(Usage)
    for unit in cluster.units.values():
        usage = found[_queue_of_unit(unit)]
        if unit.is_gang and unit.bound:
            usage.placed += 1
        elif unit.open:
            usage.pending += 1
    for member in cluster.pods.values():
        if member.ours and member.holds:
            _add(cluster, member, found)
    return dict(found)


def _add(cluster: Cluster, member: Member, found: dict[str, Usage]) -> None:
    key = member.unit
    unit = cluster.units.get(key) if key is not None else None
    usage = found[_queue_of_unit(unit) if unit is not None else _queue_of(member)]
    if key is not None and key.kind == "Pod":
        usage.placed += 1
    for name, amount in member.shape.request.items():
        if name != PODS and not is_port(name):
            usage.used[name] = usage.used.get(name, 0) + amount


def _queue_of_unit(unit: Unit) -> str:
    if unit.gang is not None:
        return unit.gang.spec.queue
    return next(map(_queue_of, unit.members.values()), DEFAULT)


def _queue_of(member: Member) -> str:
    return member.labels.get(QUEUE_LABEL) or DEFAULT


def _quantity(name: str, amount: int) -> str | int:
    if name == CPU:
        return amount // 1000 if amount % 1000 == 0 else f"{amount}m"
    if name == MEMORY and amount % 2**20 == 0:
        return f"{amount // 2**20}Mi"
    return amount
