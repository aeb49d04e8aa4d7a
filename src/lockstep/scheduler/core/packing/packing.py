"""What a packing is: which members of several shapes go to which nodes of one domain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from lockstep.scheduler.core.model.pod_shape import PodShape
from lockstep.scheduler.core.packing import node_selection
from lockstep.scheduler.core.packing.quota_headroom import Headroom
from lockstep.scheduler.core.util.array_types import BoolArray, FloatArray, IntArray

Block = tuple[int, int]
"""The number of a tier, and how many members a domain of it takes at a time."""


@dataclass(frozen=True, slots=True)
class Item:
    """Members of one group that share a shape."""

    shape: PodShape
    group: int
    available: int


@dataclass(frozen=True, slots=True)
class Quota:
    """How many members of a group must and may be placed."""

    need: int
    want: int


@dataclass(slots=True)
class DomainNodes:
    """The nodes to pack into: those of one domain."""

    table: IntArray
    """What is free by column and row of the node table."""
    rows: IntArray
    """The rows of the nodes."""
    room: list[IntArray]
    """For each item, how many of its members each node holds while no other item comes."""
    eligible: list[BoolArray]
    """For each item, which of the nodes its members may stand on."""
    liking: list[FloatArray]
    rank: IntArray
    tiers: list[node_selection.Ids]
    """Domain numbers of the tiers inside the domain, widest first."""
    spread: bool = False
    tiers_of_policy: IntArray | None = None
    """For each node the tier of the workload's NodePolicy; lower ones are filled first."""
    blocks: list[tuple[node_selection.Ids, int] | None] = field(default_factory=list)
    """For each item the domains that take its members in blocks only, and their size."""
    headroom: Sequence[Headroom] = ()
    """What may be used of resources that are limited."""

    def free(self, nodes: IntArray | None = None) -> IntArray:
        """Return what the nodes, or some of them, have free, by column and node."""
        return self.table[:, self.rows if nodes is None else self.rows[nodes]]


@dataclass(slots=True)
class Packing:
    """How many members of each item go to each node of the ground."""

    counts: IntArray
    exact: bool = True
    """False when the search gave up: a packing may then exist although none was found."""
    placed: IntArray = field(init=False)

    def __post_init__(self) -> None:
        self.placed = self.counts.sum(axis=1)

    def satisfies(self, items: Sequence[Item], quotas: Sequence[Quota]) -> bool:
        """Return whether every group has the members that it needs."""
        return not any(self.short(items, quotas))

    def short(self, items: Sequence[Item], quotas: Sequence[Quota]) -> list[int]:
        """Return for each group how many of the members that it needs have no place."""
        placed = [0] * len(quotas)
        for item, number in zip(items, self.placed, strict=True):
            placed[item.group] += int(number)
        return [max(0, quota.need - got) for quota, got in zip(quotas, placed, strict=True)]
