"""Which nodes of a domain to take, once it is known how many members fit each of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lockstep.scheduler.core.scoring.feasibility import PREFERENCE_WEIGHT
from lockstep.scheduler.core.util.array_types import FloatArray, IntArray
from lockstep.scheduler.core.util.unique import numbered

Ids = NDArray[np.int32]


@dataclass(slots=True)
class Room:
    """How many members fit each node, how much the node is liked, and its place in the names."""

    count: IntArray
    liking: FloatArray
    rank: IntArray


def binpack(room: Room, tiers: Sequence[Ids], wanted: int, *, largest_first: bool) -> IntArray:
    """Return how many members each node takes so that few domains and few nodes are touched.

    Tier by tier the domain that holds what is left with the least room to spare is entered; where
    none holds it, the roomiest is taken whole and the rest looked for beside it. *largest_first*
    does the same with nodes (members that talk to each other); otherwise nodes fill up in the
    order in which they are liked. The caller sees to it that so many members fit in all.
    """
    taken = np.zeros_like(room.count)
    inside: IntArray = np.flatnonzero(room.count)
    for ids in tiers:
        inside, wanted = _enter(room, ids, inside, wanted, taken)
        if wanted == 0:
            return taken
    if largest_first:
        _fill_few(room, inside, wanted, taken)
    else:
        order = inside[np.lexsort((room.rank[inside], -room.liking[inside]))]
        taken[order] = _in_turn(room.count[order], wanted)
    return taken


def _enter(
    room: Room, ids: Ids, inside: IntArray, wanted: int, taken: IntArray
) -> tuple[IntArray, int]:
    """Take whole domains until one holds the rest; return its rows and what is left to take."""
    own = ids[inside]
    if len(inside) < 2 or (own == own[0]).all():
        return inside, wanted
    _, local = numbered(own)
    domains = int(local.max()) + 1
    if domains == len(inside):  # this tier is the nodes themselves
        return inside, wanted
    left = np.bincount(local, weights=room.count[inside]).astype(np.int64)
    liked = np.bincount(local, weights=room.liking[inside]) / np.bincount(local)
    first = np.full(domains, np.iinfo(np.int64).max)
    np.minimum.at(first, local, room.rank[inside])
    while True:
        holding = left >= wanted
        if holding.any():
            tightest = np.where(holding, left, np.iinfo(np.int64).max)
            return inside[local == np.lexsort((first, -liked, tightest))[0]], wanted
        roomiest = np.lexsort((first, -liked, -left))[0]
        rows = inside[local == roomiest]
        taken[rows] = room.count[rows]
        wanted -= int(left[roomiest])
        left[roomiest] = 0


def whole_blocks(count: IntArray, ids: Ids, size: int) -> IntArray:
    """Return *count* cut so that the nodes of every domain hold whole blocks together.

    A node outside all domains counts as one by itself.
    """
    own = np.where(ids >= 0, ids, ids.max(initial=0) + 1 + np.arange(len(ids)))
    order = np.argsort(own, kind="stable")
    filled = np.cumsum(count[order])
    starts = np.flatnonzero(np.diff(own[order], prepend=-1))
    ahead = np.repeat(np.concatenate([[0], filled])[starts], np.diff(np.append(starts, len(order))))
    total = np.bincount(own, weights=count).astype(np.int64)
    limit = (total // size * size)[own[order]]
    cut = np.zeros_like(count)
    cut[order] = np.clip(limit - (filled - count[order] - ahead), 0, count[order])
    return cut


def _in_turn(count: IntArray, wanted: int) -> IntArray:
    """Return how many each takes when they are filled one after the other."""
    before = np.cumsum(count) - count
    share: IntArray = np.clip(wanted - before, 0, count)
    return share


def _fill_few(room: Room, inside: IntArray, wanted: int, taken: IntArray) -> None:
    """Fill the roomiest nodes; the rest goes to the node that holds it with least to spare."""
    count, liking, rank = room.count[inside], room.liking[inside], room.rank[inside]
    preference = np.round(liking / PREFERENCE_WEIGHT)
    order = np.lexsort((rank, -liking, -count, -preference))
    share = _in_turn(count[order], wanted)
    partial = np.flatnonzero((share > 0) & (share < count[order]))
    taken[inside[order]] = share
    if len(partial):
        place, rest = int(partial[0]), int(share[partial[0]])
        taken[inside[order[place]]] = 0
        tail = order[place:]
        tail = tail[count[tail] >= rest]
        best = tail[np.lexsort((rank[tail], -liking[tail], count[tail]))[0]]
        taken[inside[best]] = rest


def spread(room: Room, wanted: int) -> IntArray:
    """Return how many members each node takes so that as many nodes as possible are used.

    Every node gets its first member before any gets its second, those liked best first.
    """
    inside = np.flatnonzero(room.count)
    order = inside[np.lexsort((room.rank[inside], -room.liking[inside]))]
    taken = np.zeros_like(room.count)
    while wanted > 0 and len(order):
        # As many full rounds as the least roomy node allows, then one partial round.
        least = int((room.count[order] - taken[order]).min())
        rounds = max(1, min(least, wanted // len(order)))
        order = order[:wanted]
        taken[order] += rounds
        wanted -= rounds * len(order)
        order = order[taken[order] < room.count[order]]
    return taken
