"""Shares of GPUs: what a pod takes of single cards, and how many such pods fit.

Each card of a node is three columns of the node table, so all code that looks at free room
(placing, explaining, what-if) sees the cards too. The columns are there once the first share is
asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from lockstep.api.containers import Container
from lockstep.api.core import PodSpec
from lockstep.api.names import (
    GPU_CARDS,
    GPU_CLASS_ANNOTATION,
    GPU_COMPUTE,
    GPU_ISOLATION_ANNOTATION,
    GPU_MEMORY,
)
from lockstep.api.quantity import to_int
from lockstep.scheduler.core.resources.columns import GPU_COLUMN, UNMARKED, Columns
from lockstep.scheduler.core.util.array_types import BoolArray, FloatArray, IntArray

SHARE_NAMES = (GPU_CARDS, GPU_COMPUTE, GPU_MEMORY)
NOTHING_SAID: Mapping[str, str] = MappingProxyType({})
BYTES_FROM = 1 << 20
"""Amounts of memory from here on are bytes: no GPU has as many MiB."""
MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class GpuShare:
    """What a pod takes of each of so many cards; what is 0 is not counted."""

    cards: int
    compute: int
    """Hundredths of a card."""
    memory: int
    """MiB."""
    held_by: str = "lease"
    """What holds it on its cards; only shares held by the same may be together on one."""
    offline: bool = False
    """Whether it uses what online ones leave."""

    @property
    def plain(self) -> bool:
        """Return whether nothing sets it apart from other shares."""
        return self.held_by == "lease" and not self.offline

    @property
    def marks(self) -> tuple[str, str]:
        """Return what is counted of it on its cards."""
        return self.held_by, "offline" if self.offline else "online"

    @property
    def asks(self) -> dict[str, int]:
        """Return it by resource name."""
        found = {GPU_CARDS: self.cards, GPU_COMPUTE: self.compute, GPU_MEMORY: self.memory}
        return {name: amount for name, amount in found.items() if amount}


def split_off(
    spec: PodSpec, request: dict[str, int], annotations: Mapping[str, str] = NOTHING_SAID
) -> GpuShare | None:
    """Take the share that a pod asks for out of its *request*, and return it.

    Containers of one pod use the same cards, so their shares add up.
    """
    asked = {name: request.pop(name, 0) for name in SHARE_NAMES}
    memory = asked[GPU_MEMORY]
    memory = -(-memory // MIB) if memory >= BYTES_FROM else memory
    if not memory and not asked[GPU_COMPUTE]:
        return None
    cards = max((_cards(one) for one in (*spec.containers, *spec.init_containers)), default=0)
    offline = annotations.get(GPU_CLASS_ANNOTATION) == "offline"
    return GpuShare(max(1, cards), asked[GPU_COMPUTE], memory, mechanism(annotations), offline)


def mechanism(annotations: Mapping[str, str]) -> str:
    """Return what is to hold a pod's shares; the node refuses what there is not."""
    said = annotations.get(GPU_ISOLATION_ANNOTATION, "lease")
    return said if said in ("mps", "timeslice") else "lease"


def _cards(container: Container) -> int:
    asked = {**container.resources.limits, **container.resources.requests}
    return to_int(asked.get(GPU_CARDS, 0))


def shares_fit(
    free: IntArray, share: GpuShare, columns: Columns, *, apart: bool = True
) -> IntArray:
    """Return how many pods with such shares the cards in each column of *free* hold."""
    room = room_on_cards(free, share, columns, apart=apart)
    total: IntArray = room.sum(axis=0)
    if share.cards == 1:
        return total
    # A card counts once for each pod: no more pods than cards can be told apart.
    fit: IntArray = total // share.cards
    while True:
        fewer = np.minimum(room, fit).sum(axis=0) // share.cards
        if (fewer == fit).all():
            return fit
        fit = fewer


def room_on_cards(
    free: IntArray, share: GpuShare, columns: Columns, *, apart: bool = True
) -> IntArray:
    """Return by card and node how many such shares the card holds.

    Without *apart* it does not matter by what others on the card are held.
    """
    ids = columns.card_ids
    shape = (columns.cards, free.shape[1])
    room: IntArray = np.full(shape, np.iinfo(np.int32).max, dtype=np.int64)
    for kind, amount in (("compute", share.compute), ("memory", share.memory)):
        if amount:
            np.minimum(room, free[ids[kind]] // amount, out=room)
    if apart and columns.marked:
        for other in ("lease", "mps", "timeslice"):
            if other != share.held_by:
                room[free[columns.mark_ids[other]] < UNMARKED] = 0
    return np.maximum(room, 0)


def unsuited(free: IntArray, share: GpuShare, columns: Columns) -> BoolArray:
    """Return by card and node where a share had better not go.

    An online share had better not be beside another, nor an offline one on a card without any.
    """
    if not columns.classed:
        return np.zeros((columns.cards, free.shape[1]), dtype=bool)
    online: BoolArray = free[columns.mark_ids["online"]] < UNMARKED
    return ~online if share.offline else online


def ill_matched(free: IntArray, share: GpuShare, columns: Columns) -> BoolArray:
    """Return the nodes where a share has room, but on cards alone where it had better not go."""
    room = room_on_cards(free, share, columns) > 0
    suited = room & ~unsuited(free, share, columns)
    found: BoolArray = np.any(room, axis=0) & ~np.any(suited, axis=0)
    return found


def openings(free: IntArray, share: GpuShare, columns: Columns) -> IntArray:
    """Return how many unused cards a pod with such shares would begin, by node."""
    begun = (room_on_cards(free, share, columns) > 0) & (free[columns.card_ids["whole"]] <= 0)
    found: IntArray = np.maximum(share.cards - begun.sum(axis=0), 0)
    return found


def tightness(free: IntArray, share: GpuShare, columns: Columns) -> FloatArray:
    """Return how little the fullest card that holds the share has left, 1 for nothing, by node."""
    kind = "compute" if share.compute else "memory"
    amount = share.compute or share.memory
    left = free[columns.card_ids[kind]] - amount
    holds = room_on_cards(free, share, columns) > 0
    least = np.where(holds, left, np.iinfo(np.int32).max).min(axis=0)
    found: FloatArray = 1.0 / (1.0 + np.maximum(least, 0) / amount)
    return found


def pick(
    free: IntArray,
    share: GpuShare,
    columns: Columns,
    *,
    ahead: int = 0,
    liked: Sequence[int] = (),
) -> list[int]:
    """Return the cards of one node (a column of *free*) that a pod's shares go to.

    Those *liked* best come first; else cards in use before unused ones, and the fullest
    that will do. So many pods alike that are still *ahead* find room on what is left, where they
    do at all.

    Raises:
        ValueError: when too few cards have room.
    """
    room = room_on_cards(free[:, None], share, columns)[:, 0]
    open_to = [card for card in liked if room[card] > 0] or with_room(free, share, columns)
    if columns.classed:
        wrong = unsuited(free[:, None], share, columns)[:, 0]
        open_to.sort(key=lambda card: bool(wrong[card]))
    if len(open_to) < share.cards:
        raise ValueError(
            f"{share.cards} GPUs with room for a share asked for, {len(open_to)} there"
        )
    chosen = open_to[: share.cards]
    if ahead and share.cards > 1:
        left = room.copy()
        left[chosen] -= 1
        if np.minimum(left, ahead).sum() < share.cards * ahead:
            # The roomiest cards always leave room: a card counts once for each pod.
            chosen = sorted(open_to, key=lambda card: -room[card])[: share.cards]
    return chosen


def with_room(free: IntArray, share: GpuShare, columns: Columns) -> list[int]:
    """Return the cards of one node that have room, in use before others, the fullest first."""
    ids, room = columns.card_ids, room_on_cards(free[:, None], share, columns)[:, 0]
    return sorted(
        (card for card in range(columns.cards) if room[card] > 0),
        key=lambda card: (
            free[ids["whole"][card]] > 0,
            free[ids["compute"][card]],
            free[ids["memory"][card]],
            card,
        ),
    )


def spend(free: IntArray, share: GpuShare | None, whole: int, times: int, columns: Columns) -> None:
    """Take from one node (a column of *free*) the cards of so many pods, in place.

    The count of whole GPUs is expected to be less by what the pods take whole already.
    """
    for number in range(times):
        if whole:
            hold_whole(free, whole, columns)
        if share is not None:
            use(free, share, pick(free, share, columns, ahead=times - 1 - number), columns)


def hold_whole(free: IntArray, count: int, columns: Columns) -> None:
    """Take so many cards of one node (a column of *free*) whole, in place: the smallest that do."""
    ids = columns.card_ids
    untouched = [card for card, column in enumerate(ids["whole"]) if free[column] > 0]
    untouched.sort(key=lambda card: free[ids["memory"][card]])
    for card in untouched[:count]:
        for kind in ids:
            free[ids[kind][card]] = 0


def use(free: IntArray, share: GpuShare, cards: Sequence[int], columns: Columns) -> None:
    """Take a share of each of some *cards* from one node (a column of *free*), in place."""
    ids = columns.card_ids
    for card in cards:
        free[GPU_COLUMN] -= free[ids["whole"][card]]
        free[ids["whole"][card]] = 0
        free[ids["compute"][card]] -= share.compute
        free[ids["memory"][card]] -= share.memory
        for mark in share.marks if columns.marked else ():
            free[columns.mark_ids[mark][card]] -= 1
