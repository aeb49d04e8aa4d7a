"""What a unit asks for right now, in the form in which it is solved and explained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from lockstep.scheduler.core.cluster import Cluster
from lockstep.scheduler.core.nodes import IntArray
from lockstep.scheduler.core.packing import Item, Quota
from lockstep.scheduler.core.spots import Ids
from lockstep.scheduler.core.units import Member, Unit


@dataclass(frozen=True, slots=True)
class Bounds:
    """How close members must stay: a tier's number, and the nodes where some stand already."""

    required: int | None
    preferred: int | None
    standing: tuple[int, ...]
    """Rows of the members that have nodes; whoever joins must share their domain."""


@dataclass
class Problem:
    """Items to be packed, what each group needs, and within which bounds."""

    items: list[Item]
    members: list[list[Member]]
    """For each item its pending members, in the order in which places are given out."""
    needs: list[Quota]
    bounds: Bounds
    group_bounds: list[Bounds]
    spread: bool
    wants: list[Quota] = field(init=False)
    """The same with everything that is wanted taken as needed."""

    def __post_init__(self) -> None:
        self.wants = [Quota(quota.want, quota.want) for quota in self.needs]

    @property
    def single(self) -> bool:
        """Return whether this is one pod that may stand anywhere."""
        return (
            len(self.items) == 1
            and self.needs[0].want == 1
            and self.bounds == _FREE
            and self.group_bounds[0] == _FREE
            and not self.spread
        )

    @property
    def elastic(self) -> bool:
        """Return whether more members are wanted than needed."""
        return self.needs != self.wants

    @cached_property
    def signature(self) -> tuple[object, ...]:
        """Return what decides the outcome: equal signatures fail or fit alike."""
        return (
            tuple((item.shape.key, item.group, item.available) for item in self.items),
            tuple(self.needs),
            self.bounds,
            tuple(self.group_bounds),
            self.spread,
        )


_FREE = Bounds(None, None, ())


def problem_of(cluster: Cluster, unit: Unit) -> Problem:
    """Return what the unit's pending members ask for."""
    items: list[Item] = []
    members: list[list[Member]] = []
    needs: list[Quota] = []
    group_bounds: list[Bounds] = []
    for number, muster in enumerate(unit.musters):
        by_shape: dict[int, list[Member]] = {}
        for member in muster.pending:
            by_shape.setdefault(member.shape.id, []).append(member)
        for alike in by_shape.values():
            items.append(Item(alike[0].shape, number, len(alike)))
            members.append(alike)
        needs.append(Quota(muster.need, muster.want))
        wish = muster.group.wish
        group_bounds.append(_bounds(cluster, wish.required, wish.preferred, muster.bound))
    wish = unit.wish
    return Problem(
        items,
        members,
        needs,
        _bounds(cluster, wish.required, wish.preferred, unit.bound),
        group_bounds,
        unit.spread,
    )


def _bounds(
    cluster: Cluster, required: str | None, preferred: str | None, bound: Sequence[Member]
) -> Bounds:
    tiers, rows = cluster.table.tiers, cluster.table.rows
    standing: tuple[int, ...] = ()
    if bound:
        standing = tuple(sorted({rows[m.node] for m in bound if m.node in rows}))
    return Bounds(
        tiers.level(required) if required else None,
        tiers.level(preferred) if preferred else None,
        standing,
    )


def pinned(ids: Ids, standing: Sequence[int]) -> IntArray:
    """Return the domains in which the members that have nodes stand."""
    return np.unique(ids[list(standing)]).astype(np.int64)
