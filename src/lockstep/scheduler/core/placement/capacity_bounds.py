"""Which pods can stand wherever others can, and what that says about the room they all need.

Where a pod takes no more than another in any way, a node holds no more of both kinds together than
it holds of the lesser kind alone. A domain with less room for the lesser kind than there are pods
of both is thus ruled out without a search.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lockstep.scheduler.core.model.pod_shape import PodShape
from lockstep.scheduler.core.packing.packing import Item, Quota
from lockstep.scheduler.core.scoring.feasibility import Fit
from lockstep.scheduler.core.util.array_types import BoolArray, IntArray


def enough_room(
    items: Sequence[Item], quotas: Sequence[Quota], fits: Sequence[Fit], room: IntArray
) -> BoolArray:
    """Return which domains may hold what every group needs, from the *room* by item and domain."""
    least = np.array(least_room(items, quotas, fits), dtype=np.int64)
    enough: BoolArray = np.logical_and.reduce(room >= least[:, None], axis=0)
    for group, quota in enumerate(quotas):
        total = np.zeros(room.shape[1], dtype=np.int64)
        for item, held in zip(items, room, strict=True):
            if item.group == group:
                total += np.minimum(held, item.available)
        enough &= total >= quota.need
    return enough


def least_room(items: Sequence[Item], quotas: Sequence[Quota], fits: Sequence[Fit]) -> list[int]:
    """Return by item for how many of its pods there must be room if all groups are to fit."""
    found = []
    for item, fit in zip(items, fits, strict=True):
        needed = [quota.need for quota in quotas]
        for other, its in zip(items, fits, strict=True):
            anywhere = other is item or not (its.eligible & ~fit.eligible).any()
            if not anywhere or not takes_no_more(item.shape, other.shape):
                needed[other.group] -= other.available
        found.append(sum(max(0, need) for need in needed))
    return found


def takes_no_more(less: PodShape, more: PodShape) -> bool:
    """Return whether the devices and amounts of any pod of *more* hold one of *less*."""
    if less is more:
        return True
    if any(more.request.get(name, 0) < amount for name, amount in less.request.items()):
        return False
    return _shares_no_more(less, more) and _asks_no_more(less, more)


def _shares_no_more(less: PodShape, more: PodShape) -> bool:
    if less.share is None:
        return True
    one, other = less.share, more.share
    return other is not None and (
        one.held_by == other.held_by
        and one.cards <= other.cards
        and one.compute <= other.compute
        and one.memory <= other.memory
    )


def _asks_no_more(less: PodShape, more: PodShape) -> bool:
    required = less.alignment.required
    if not required <= more.alignment.required:
        return False
    ask, theirs = less.ask(required), more.ask(more.alignment.required)
    # Of evenly split devices a part is not split evenly, but for one of each.
    sizes = (ask.cards, ask.nics)
    return not ask.paired or sizes in ((1, 1), (theirs.cards, theirs.nics))
