"""Packing members of several shapes into the nodes of one domain, exactly.

Sums over a domain over-promise: two shapes may each fit alone and not together. So a gang counts
as fitting only when every member has been given a node. A greedy packing answers most cases; where
it fails and there are several shapes, the exact search is asked.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lockstep.scheduler.core.packing.exact import ExactPacking
from lockstep.scheduler.core.packing.greedy import Greedy
from lockstep.scheduler.core.packing.packing import DomainNodes, Item, Packing, Quota
from lockstep.scheduler.core.packing.quota_headroom import uneven


def pack(
    items: Sequence[Item], quotas: Sequence[Quota], ground: DomainNodes, *, exactly: bool = True
) -> Packing:
    """Return a packing that holds what every group needs, and what they want where it fits.

    When there is none, the returned packing is the fullest one found and does not satisfy. Without
    *exactly* only the quick way is tried, which may miss one.
    """
    greedy = Greedy(items, ground)
    greedy.place(_targets(items, [quota.need for quota in quotas]))
    packing = Packing(greedy.counts)
    if not packing.satisfies(items, quotas):
        simple = (len(items) == 1 and not uneven(ground.headroom)) or any(ground.blocks)
        if simple or not exactly or exceeds(items, quotas, ground):
            return packing
        exact = ExactPacking(items, quotas, ground).search()
        packing.exact = exact.exact
        if exact.placed.sum() <= packing.placed.sum() and not exact.satisfies(items, quotas):
            return packing
        packing = _trim(exact, items, quotas)
        if not packing.satisfies(items, quotas):
            return packing
    extras = _extras(items, quotas, packing)
    if not any(extras):
        return packing
    greedy = Greedy(items, ground, packing.counts)
    greedy.place(extras)
    return Packing(greedy.counts, packing.exact)


def exceeds(items: Sequence[Item], quotas: Sequence[Quota], ground: DomainNodes) -> bool:
    """Return whether the groups together need more of some resource than there is in all."""
    open_to = np.logical_or.reduce(ground.eligible)
    for column in {int(c) for item in items for c in item.shape.columns}:
        needed = 0
        for group, quota in enumerate(quotas):
            amounts = [(i.shape.amount(column), i.available) for i in items if i.group == group]
            left = quota.need
            for amount, available in sorted(amounts):  # the least that the group can do with
                needed += amount * min(left, available)
                left -= min(left, available)
        if needed > int(np.maximum(ground.table[column, ground.rows], 0)[open_to].sum()):
            return True
    return False


def _trim(packing: Packing, items: Sequence[Item], quotas: Sequence[Quota]) -> Packing:
    """Take out what was placed beyond what a group wants."""
    counts = packing.counts.copy()
    for group, quota in enumerate(quotas):
        numbers = [number for number, item in enumerate(items) if item.group == group]
        surplus = int(counts[numbers].sum()) - quota.want
        for number in reversed(numbers):
            for node in reversed(np.flatnonzero(counts[number])):
                drop = min(surplus, int(counts[number, node]))
                if drop <= 0:
                    break
                counts[number, node] -= drop
                surplus -= drop
    return Packing(counts, packing.exact)


def _targets(items: Sequence[Item], per_group: Sequence[int]) -> list[int]:
    left = list(per_group)
    targets = []
    for item in items:
        share = min(item.available, left[item.group])
        left[item.group] -= share
        targets.append(share)
    return targets


def _extras(items: Sequence[Item], quotas: Sequence[Quota], packing: Packing) -> list[int]:
    left = [quota.want for quota in quotas]
    for item, number in zip(items, packing.placed, strict=True):
        left[item.group] -= int(number)
    extras = []
    for item, number in zip(items, packing.placed, strict=True):
        share = max(0, min(item.available - int(number), left[item.group]))
        left[item.group] -= share
        extras.append(share)
    return extras
