"""Dealing the devices of one node to the pods that come to stand there together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np

from lockstep.scheduler.core.model.node_table import NodeTable
from lockstep.scheduler.core.model.pod_shape import PodShape
from lockstep.scheduler.core.resources import nearest_gpus
from lockstep.scheduler.core.resources.aligned_capacity import stock_of, take
from lockstep.scheduler.core.resources.aligned_selection import choices
from lockstep.scheduler.core.resources.alignment import Alignment, capacity, concessions
from lockstep.scheduler.core.resources.device_allocation import NOTHING, Grant
from lockstep.scheduler.core.resources.exact_device_fit import (
    SearchBudget,
    exact_fit,
    left_of,
    ways,
)
from lockstep.scheduler.core.resources.gpu_shares import hold_whole, spend
from lockstep.scheduler.core.resources.share_packing import seat
from lockstep.scheduler.core.scoring.strategies import Preference
from lockstep.scheduler.core.util.array_types import IntArray
from lockstep.scheduler.core.util.bitmask import indices_of, mask_of

PICKS = 10_000
"""Picks tried for the pods of one node before giving up."""


def deal(
    table: NodeTable, row: int, shapes: Sequence[PodShape], preference: Preference | None = None
) -> list[Grant]:
    """Return the devices of a node for pods that it has room for, in their order.

    Those that go by how devices are connected choose first, then those that take whole GPUs, which
    get neighbours, then those that take shares.

    Raises:
        ValueError: when the node has no room for them after all.
    """
    if len(shapes) == 1 and not table.columns.cards:
        return [_alone(table, row, shapes[0].gpus)]
    grants = [NOTHING] * len(shapes)
    left = table.free[:, row].copy() if table.columns.cards else None
    if left is not None:
        for i, grant in _special(shapes, left):
            grants[i] = grant
            take(left, grant, shapes[i])
    _whole(table, row, shapes, grants, left)
    if left is not None:
        for i, cards in _shares(row, shapes, left, preference):
            grants[i] = Grant(cards)
    return grants


def _shares(
    row: int, shapes: Sequence[PodShape], left: IntArray, preference: Preference | None
) -> Iterator[tuple[int, int]]:
    """Yield the cards, as a mask, of each pod that just takes shares."""
    waiting = [
        (i, shape, shape.share)
        for i, shape in enumerate(shapes)
        if shape.share is not None and not shape.goes_by_connections
    ]
    if not waiting:
        return

    def liked(column: IntArray, number: int) -> Sequence[int]:
        return preference.cards(row, column, waiting[number][1]) if preference else ()

    seats = seat(left, [share for *_, share in waiting], waiting[0][1].table, liked)
    for (i, *_), cards in zip(waiting, seats, strict=True):
        yield i, mask_of(cards)


def _alone(table: NodeTable, row: int, count: int) -> Grant:
    """Return so many whole GPUs for one pod, where no pod there goes by anything else."""
    if not count:
        return NOTHING
    nics = table.free_nics(row) if table.nic_used[row] else 0
    return Grant(nearest_gpus.choose(table.layout(row), _open(table, row, count), count, nics))


def _open(table: NodeTable, row: int, count: int) -> int:
    """Return the mask of the free GPUs of a node, without those kept for others if that is enough.

    How many are kept is known by their number; which ones, only of some.
    """
    free = table.free_devices(row)
    spare = free & ~int(table.gpu_kept[row])
    return spare if spare.bit_count() >= count else free


def _whole(
    table: NodeTable,
    row: int,
    shapes: Sequence[PodShape],
    grants: list[Grant],
    left: IntArray | None,
) -> None:
    """Give the pods that just take whole GPUs theirs, neighbours to neighbours."""
    plain = [i for i, s in enumerate(shapes) if s.gpus and not s.goes_by_connections]
    if not plain:
        return
    count = sum(shapes[i].gpus for i in plain)
    layout, free = table.layout(row), _open(table, row, count)
    if left is not None:
        whole = table.columns.card_ids["whole"]
        free &= mask_of(np.flatnonzero(left[whole] > 0).tolist())
    # A pod that needs no NIC leaves the roots that have some to others, once any of them is taken.
    nics = table.free_nics(row) if table.nic_used[row] else 0
    pool = nearest_gpus.choose(layout, free, count, nics)
    for i in plain:
        chosen = nearest_gpus.choose(layout, pool, shapes[i].gpus, nics)
        pool &= ~chosen
        grants[i] = Grant(chosen)
        if left is not None:
            for ids in table.columns.card_ids.values():
                left[[ids[card] for card in indices_of(chosen) if card < len(ids)]] = 0


def _special(shapes: Sequence[PodShape], left: IntArray) -> Iterator[tuple[int, Grant]]:
    """Yield the devices of each pod that goes by how they are connected, leaving the others room.

    Raises:
        ValueError: when the node has no room for them after all.
    """
    special = [i for i, shape in enumerate(shapes) if shape.goes_by_connections]
    if not special:
        return
    special.sort(key=lambda i: _order(shapes[i]))
    found = _dealt(tuple(shapes), tuple(special), left.tobytes())
    yield from zip(special, found, strict=True)


@lru_cache(maxsize=1024)
def _dealt(shapes: tuple[PodShape, ...], special: tuple[int, ...], left: bytes) -> list[Grant]:
    """Return what those get, in their order; of a gang's nodes many have the same left."""
    column = np.frombuffer(left, dtype=np.int64).copy()
    return _Deal(shapes).out(column, [shapes[i] for i in special])


def _order(shape: PodShape) -> tuple[int, ...]:
    must = shape.alignment.required
    return -len(must), -shape.gpus, -shape.nics, -shape.cpu, shape.id


class _Deal:
    """Tries picks for one pod after the other, and others where the next ones find no room."""

    def __init__(self, shapes: Sequence[PodShape]) -> None:
        """Deal for *shapes*, all that come to stand on the node."""
        self._picks = PICKS
        self._search_budget = SearchBudget()
        self._kinds = tuple(dict.fromkeys(shape.kind for shape in shapes if shape.takes_devices))
        plain = (shape for shape in shapes if not shape.goes_by_connections)
        self._plain = Counter(shape.kind for shape in plain if shape.takes_devices)

    def out(self, left: IntArray, shapes: Sequence[PodShape]) -> list[Grant]:
        found = self._rest(left, shapes)
        if found is None:
            raise ValueError(f"no devices for {len(shapes)} pods on a node that had room for them")
        return found

    def _rest(self, left: IntArray, shapes: Sequence[PodShape]) -> list[Grant] | None:
        if not shapes:
            return []
        first, others = shapes[0], shapes[1:]
        for grant in self._choices(left, first):
            self._picks -= 1
            if self._picks < 0:
                return None
            after = left.copy()
            take(after, grant, first)
            if not self._leaves_room(after, first, others):
                continue
            rest = self._rest(after, others)
            if rest is not None:
                return [grant, *rest]
        return None

    def _choices(self, left: IntArray, shape: PodShape) -> Iterator[Grant]:
        """Yield the tidiest picks first, then, where pods of several kinds meet, all others."""
        yield from picks(left, shape)
        if len(self._kinds) > 1:
            yield from ways(left_of(left, self._kinds, shape.table), shape.kind)

    def _leaves_room(self, left: IntArray, first: PodShape, others: Sequence[PodShape]) -> bool:
        """Return whether the pods that are still to come may find their devices."""
        if len(self._kinds) == 1:
            ask = first.ask(first.alignment.required)
            return not others or capacity(stock_of(left, first, ask), ask) >= len(others)
        counts = self._plain + Counter(shape.kind for shape in others)
        there = left_of(left, self._kinds, first.table)
        asked = [counts[kind] for kind in self._kinds]
        return exact_fit(self._kinds).holds(there, asked, self._search_budget) is not False


def picks(left: IntArray, shape: PodShape) -> Iterator[Grant]:
    """Yield devices for one pod from what a node has left, as it would rather have them first."""
    beside = bool(shape.nics and (shape.gpus or shape.share))
    for relations in wishes(shape.alignment, beside=beside):
        ask = shape.ask(relations)
        yield from choices(stock_of(left, shape, ask), ask, 0)


@lru_cache(maxsize=256)
def wishes(alignment: Alignment, *, beside: bool) -> tuple[frozenset[str], ...]:
    """Return the relations to be tried for a pod, the most first, those that it requires last.

    GPUs and NICs of one pod had better be *beside* each other even where it does not say so.
    """
    wished = alignment.preferred | ({"pcie"} if beside else frozenset())
    return tuple(alignment.required | kept for kept in concessions(wished - alignment.required))


def left_after(shapes: Sequence[PodShape], free: IntArray, counts: IntArray) -> IntArray:
    """Return what nodes have left, in amounts and in devices, once they hold so many pods.

    *counts* are by shape and node.

    Raises:
        ValueError: when a node does not hold them.
    """
    left = free.copy()
    for shape, taken in zip(shapes, counts, strict=True):
        left[shape.columns] -= shape.amounts[:, None] * taken
    by_device = any(shape.share is not None or shape.goes_by_connections for shape in shapes)
    if by_device and counts.any():
        _spend_devices(left, list(zip(shapes, counts, strict=True)))
    return left


def _spend_devices(free: IntArray, asked: Sequence[tuple[PodShape, IntArray]]) -> None:
    """Take the single devices of so many pods of each shape by node from all nodes, in place.

    What they ask for by number is expected to be taken already. Nodes in the same state that get
    the same are worked out once: there are few kinds of them.

    Raises:
        ValueError: when a node does not hold them all.
    """
    times = np.array([here for _, here in asked])
    nodes = np.flatnonzero(times.any(axis=0))
    devices_there = free[asked[0][0].table.device_ids][:, nodes]
    states = np.ascontiguousarray(np.concatenate([devices_there, times[:, nodes]]).T)
    alike: dict[bytes, list[int]] = {}
    for node, state in zip(nodes.tolist(), states, strict=True):
        alike.setdefault(state.tobytes(), []).append(node)
    for same in alike.values():
        before = free[:, same[0]]
        after = before.copy()
        _spend(after, [(shape, int(here[same[0]])) for shape, here in asked])
        free[:, same] += (after - before)[:, None]


def _spend(free: IntArray, asked: Sequence[tuple[PodShape, int]]) -> None:
    there = [(shape, times) for shape, times in asked if times]
    if len(there) == 1:
        _spend_alike(free, *there[0])
    else:
        _spend_mixed(free, there)


def _spend_alike(free: IntArray, shape: PodShape, times: int) -> None:
    """Take the single devices of so many pods alike from one node (a column of *free*), in place.

    What they ask for by number is expected to be taken already.
    """
    if not shape.goes_by_connections:
        spend(free, shape.share, shape.gpus, times, shape.table)
        return
    ask = shape.ask(shape.alignment.required)
    for more in range(times - 1, -1, -1):
        take(free, choices(stock_of(free, shape, ask), ask, more)[0], shape)


def _spend_mixed(free: IntArray, asked: Sequence[tuple[PodShape, int]]) -> None:
    """Take the single devices of pods of several shapes, so many each, from one node likewise.

    Raises:
        ValueError: when it does not hold them all.
    """
    shapes = [shape for shape, times in asked for _ in range(times)]
    for i, grant in _special(shapes, free):
        take(free, grant, shapes[i])
    plain = [shape for shape in shapes if not shape.goes_by_connections]
    if plain:
        table = plain[0].table
        hold_whole(free, sum(shape.gpus for shape in plain), table)
        seat(free, [shape.share for shape in plain if shape.share is not None], table)
