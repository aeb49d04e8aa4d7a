"""What stands in the way on a set of nodes: requirements not met, and room taken by others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lockstep.api.names import GPU, GPU_CARDS, GPU_COMPUTE, GPU_MEMORY
from lockstep.scheduler.core.model.node_table import NodeTable
from lockstep.scheduler.core.model.pod_shape import PodShape
from lockstep.scheduler.core.resources import wording
from lockstep.scheduler.core.resources.columns import is_port
from lockstep.scheduler.core.resources.gpu_shares import shares_fit
from lockstep.scheduler.core.scoring.feasibility import members_fit
from lockstep.scheduler.core.scoring.node_filters import Filter, filters
from lockstep.scheduler.core.util.array_types import BoolArray, IntArray

ALIGNED = "aligned devices"
"""Stands for a resource where it is only their connections that devices lack."""
ISOLATED = "cards of the same isolation"
"""Stands for a resource where it is only by what shares on them are held that cards differ."""


@dataclass(frozen=True, slots=True)
class FailedFilter:
    """Nodes kept out by one requirement, counted where it is the first that they miss."""

    kind: str
    words: str
    nodes: int
    would_hold: int
    """Members that these nodes have room for, were this the only requirement they miss."""


@dataclass(frozen=True, slots=True)
class ShortResource:
    """Eligible nodes that hold fewer members than they could, for want of one resource."""

    resource: str
    nodes: int
    used: int
    allocatable: int
    kept: int
    """What is kept free there for pods that are to come."""


@dataclass(frozen=True, slots=True)
class FilterResults:
    """Everything in the way of one shape on a set of nodes."""

    nodes: int
    barred: tuple[FailedFilter, ...]
    crowded: tuple[ShortResource, ...]
    too_small: int
    """Eligible nodes that could not hold one member even if they were empty."""
    largest: dict[str, int]
    """The most that any eligible node has of each resource asked for, used or not."""

    @property
    def eligible(self) -> int:
        """Return how many nodes meet every requirement."""
        return self.nodes - sum(one.nodes for one in self.barred)

    def describe(self) -> str:
        """Return all of it in words, the requirements first."""
        parts = []
        for one in self.barred:
            verb = "is" if one.nodes == 1 else "are"
            parts.append(f"{wording.count(one.nodes, 'node')} {verb} {one.words}")
        if self.too_small:
            parts.append(f"{wording.count(self.too_small, 'node')} too small for one such pod")
        for short in self.crowded:
            parts.append(_crowded_words(short))
        return ", ".join(parts)


def _crowded_words(short: ShortResource) -> str:
    which = wording.count(short.nodes, "node")
    if is_port(short.resource):
        return f"{which} with {wording.quantity(short.resource, 1)} in use"
    if short.resource == ALIGNED:
        return f"{which} with room whose free devices are not aligned as required"
    if short.resource == ISOLATED:
        return f"{which} with room on GPUs alone whose shares are held otherwise"
    used = wording.share(short.resource, short.used, short.allocatable)
    kept = wording.quantity(short.resource, short.kept).partition(" ")[0]
    return f"{which} with {used} in use" + (f" and {kept} kept for others" if short.kept else "")


def filter_results(table: NodeTable, shape: PodShape, inside: BoolArray) -> FilterResults:
    """Return what keeps members of a shape off the nodes *inside*."""
    left = inside & table.live
    all_filters = list(filters(table, shape))
    fit = members_fit(table.free, shape)
    barred = []
    for number, one in enumerate(all_filters):
        out = left & ~one.passes
        if out.any():
            others = [f for place, f in enumerate(all_filters) if place != number]
            barred.append(_barred(one, others, inside & table.live & ~one.passes, out, fit))
        left = left & one.passes
    rows = np.flatnonzero(left)
    empty = members_fit(table.emptied(rows), shape)
    return FilterResults(
        nodes=int((inside & table.live).sum()),
        barred=tuple(barred),
        crowded=_crowded(table, shape, rows, empty, fit[rows]),
        too_small=int((empty == 0).sum()),
        largest={
            name: int(table.allocatable[column, rows].max(initial=0))
            for name, column in zip(shape.request, shape.columns, strict=True)
        }
        | _largest_cards(table, shape, rows),
    )


def _largest_cards(table: NodeTable, shape: PodShape, rows: IntArray) -> dict[str, int]:
    """Return the most that single cards have of what a share takes."""
    if shape.share is None:
        return {}
    ids = {kind: np.array(columns) for kind, columns in table.columns.card_ids.items()}
    present = table.allocatable[np.ix_(ids["whole"], rows)].sum(axis=0)
    most = {GPU_CARDS: int(present.max(initial=0))}
    for name, kind in ((GPU_COMPUTE, "compute"), (GPU_MEMORY, "memory")):
        most[name] = int(table.allocatable[np.ix_(ids[kind], rows)].max(initial=0))
    return {name: most[name] for name in shape.share.asks}


def _barred(
    one: Filter, others: list[Filter], missing: BoolArray, first: BoolArray, fit: IntArray
) -> FailedFilter:
    alone = missing.copy()
    for other in others:
        alone &= other.passes
    return FailedFilter(one.kind, one.words, int(first.sum()), int(fit[alone].sum()))


def _crowded(
    table: NodeTable, shape: PodShape, rows: IntArray, empty: IntArray, fit: IntArray
) -> tuple[ShortResource, ...]:
    """Sort the nodes that could hold more by the resource that holds fewest of the members."""
    lacking = rows[fit < empty]
    if not len(lacking):
        return ()
    per_resource = table.free[np.ix_(shape.columns, lacking)] // shape.amounts[:, None]
    columns = [[int(column)] for column in shape.columns]
    names = list(shape.request)
    if shape.share is not None:
        kind, name = ("compute", GPU_COMPUTE) if shape.share.compute else ("memory", GPU_MEMORY)
        columns.append(table.columns.card_ids[kind])
        names.append(name)
        free = table.free[:, lacking]
        cards = shares_fit(free, shape.share, table.columns, apart=False)
        per_resource = np.vstack([per_resource, cards])
        if table.columns.marked:
            columns.append([])
            names.append(ISOLATED)
            per_resource = np.vstack([per_resource, shares_fit(free, shape.share, table.columns)])
    if shape.alignment.required:
        columns.append([])
        names.append(ALIGNED)
        per_resource = np.vstack([per_resource, fit[fit < empty]])
    scarcest = per_resource.argmin(axis=0)
    found = []
    for number, name in enumerate(names):
        there = lacking[scarcest == number]
        if len(there):
            used = int(table.used[np.ix_(columns[number], there)].sum())
            if name == GPU:
                used += int(np.bitwise_count(table.gpu_shared[there]).sum())
            total = int(table.allocatable[np.ix_(columns[number], there)].sum())
            kept = int(table.held[np.ix_(columns[number], there)].sum())
            found.append(ShortResource(name, len(there), used, total, kept))
    return tuple(sorted(found, key=lambda one: (-one.nodes, one.resource)))
