"""Which cards of one node several pods with shares of different sizes get, exactly.

Each card holds some mixes of the sizes; only the largest mixes matter. Card by card, what can be
held of every size is built up from them, again keeping only what nothing else exceeds. A pod that
takes shares of several cards takes one of each, so of a size that so many pods ask for, a card
counts at most that often; those counts are enough to tell the pods apart (Gale and Ryser).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations, islice

import numpy as np

from lockstep.scheduler.core.resources.columns import UNMARKED, Columns
from lockstep.scheduler.core.resources.gpu_shares import GpuShare, pick, use, with_room
from lockstep.scheduler.core.util.array_types import IntArray
from lockstep.scheduler.core.util.pareto import FRONT_LIMIT, undominated

CHOICES = 128
"""Sets of cards that are tried for one pod of several cards."""

Liking = Callable[[IntArray, int], Sequence[int]]
"""Returns the cards that the share with a number had better go to on a column, best first."""


def holds(free: IntArray, asked: Sequence[GpuShare], columns: Columns) -> bool | None:
    """Return whether the cards of a node (a column of *free*) hold all of some shares together.

    None when there are too many mixes to tell.
    """
    ids = columns.card_ids
    kinds = (free[ids[kind]].tolist() for kind in ("compute", "memory"))
    return held_together(zip(*kinds, mechanisms(free, columns), strict=True), asked)


def mechanisms(free: IntArray, columns: Columns) -> list[str]:
    """Return by what shares are held on each card of a node; empty where that is open."""
    found = [""] * columns.cards
    for name in ("lease", "mps", "timeslice") if columns.marked else ():
        for card in np.flatnonzero(free[columns.mark_ids[name]] < UNMARKED):
            found[card] = name
    return found


Room = tuple[int, int, str]
"""The compute and memory that a card has left, and by what shares on it are held."""


def held_together(rooms: Iterable[Room], asked: Sequence[GpuShare]) -> bool | None:
    """Return likewise whether cards with such room hold some shares."""
    if not asked:
        return True
    sizes = Counter(asked)
    shares, counts = list(sizes), np.array(list(sizes.values()), dtype=np.int64)
    needed = counts * [share.cards for share in shares]
    reached: IntArray = np.zeros((1, len(shares)), dtype=np.int64)
    known: dict[Room, IntArray | None] = {}
    for room in rooms:
        if room not in known:
            known[room] = _mixes(room, shares, counts.tolist())
        mixes = known[room]
        if mixes is None or len(reached) * len(mixes) > FRONT_LIMIT**2:
            return None
        sums = np.minimum(reached[:, None] + mixes[None], needed).reshape(-1, len(shares))
        reached = sums[undominated(sums)]
        if (reached >= needed).all(axis=1).any():
            return True
        if len(reached) > FRONT_LIMIT:
            return None
    return False


def _mixes(room: Room, shares: Sequence[GpuShare], most: Sequence[int]) -> IntArray | None:
    """Return how many of each size one card holds together, the largest mixes alone."""
    partial: list[tuple[tuple[int, ...], int, int, str]] = [((), *room)]
    last = len(shares) - 1
    for number, share in enumerate(shares):
        grown: list[tuple[tuple[int, ...], int, int, str]] = []
        for mix, compute, memory, by in partial:
            fit = most[number] if by in ("", share.held_by) else 0
            if share.compute:
                fit = min(fit, compute // share.compute)
            if share.memory:
                fit = min(fit, memory // share.memory)
            fit = max(fit, 0)
            for one in [fit] if number == last else range(fit + 1):
                left = compute - share.compute * one, memory - share.memory * one
                grown.append(((*mix, one), *left, share.held_by if one else by))
        if len(grown) > FRONT_LIMIT * 8:
            return None
        partial = grown
    found = np.array([mix for mix, *_ in partial], dtype=np.int64)
    kept: IntArray = found[undominated(found)]
    return kept if len(kept) <= FRONT_LIMIT else None


def seat(
    free: IntArray, asked: Sequence[GpuShare], columns: Columns, liked: Liking | None = None
) -> list[list[int]]:
    """Return the cards for each of some shares of one node, and take them from its column *free*.

    The largest choose first, those they like best as long as the others still find room.

    Raises:
        ValueError: when no way was found to hold them all.
    """
    seats: list[list[int]] = [[] for _ in asked]
    order = sorted(range(len(asked)), key=lambda i: _size(asked[i]), reverse=True)
    for place, number in enumerate(order):
        share, later = asked[number], [asked[other] for other in order[place + 1 :]]
        wish = liked(free, number) if liked is not None else ()
        cards = pick(free, share, columns, ahead=later.count(share), liked=wish)
        if len(set(later) | {share}) > 1:
            cards = _leaving_room(free, share, cards, later, columns)
        use(free, share, cards, columns)
        seats[number] = cards
    return seats


def _size(share: GpuShare) -> tuple[int, int, int]:
    return share.compute, share.memory, share.cards


def _leaving_room(
    free: IntArray, share: GpuShare, wish: list[int], later: Sequence[GpuShare], columns: Columns
) -> list[int]:
    """Return cards for a share that leave the *later* ones room: those wished for where they do."""
    for cards in islice(_choices(free, share, wish, columns), CHOICES):
        left = free.copy()
        use(left, share, cards, columns)
        if holds(left, later, columns):
            return cards
    return wish


def _choices(
    free: IntArray, share: GpuShare, wish: list[int], columns: Columns
) -> Iterator[list[int]]:
    """Yield the sets of cards with room, the one wished for first, alike ones once."""
    yield wish
    ids = columns.card_ids
    amounts = zip(ids["compute"], ids["memory"], mechanisms(free, columns), strict=True)
    state = [(int(free[c]), int(free[m]), by) for c, m, by in amounts]
    open_to = with_room(free, share, columns)
    seen = {tuple(sorted(state[card] for card in wish))}
    for cards in combinations(open_to, share.cards):
        alike = tuple(sorted(state[card] for card in cards))
        if alike not in seen:
            seen.add(alike)
            yield list(cards)
