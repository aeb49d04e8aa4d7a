"""Which of the domains inside a domain the groups go to that have wishes of their own.

Groups compete for the same nodes, so a choice for each of them counts only when all members have
been packed. Choices are tried in order, the first group's changing last. Where the first groups do
not fit as they were chosen, nothing that begins like that is tried again.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

import numpy as np

from lockstep.scheduler.core.labels import BoolArray
from lockstep.scheduler.core.packer import pack
from lockstep.scheduler.core.packing import Ground, Packing, Quota
from lockstep.scheduler.core.problem import Problem

PACKINGS = 256
"""Packings that are tried within one domain before the search gives up."""
Choice = BoolArray | None
"""Nodes that are open to a group; None: all that are open to its members."""
NOBODY = Quota(0, 0)


class Subdomains:
    """The search for a choice for every group with which all of them can be packed."""

    def __init__(
        self, problem: Problem, ground: Ground, choices: Sequence[Sequence[Choice]]
    ) -> None:
        """Take for each group of a problem its *choices*, best first."""
        self._items = problem.items
        self._ground = ground
        self._choices = choices
        kinds = [_kind(problem, group) for group in range(len(choices))]
        self._twin = [_last(kinds[:number], kind) for number, kind in enumerate(kinds)]
        several = [number for number, found in enumerate(choices) if len(found) > 1]
        self._last = max(several, default=0)
        """The last group that has a choice: what fails before it fails however that one goes."""
        self._held: set[tuple[int, ...]] = set()
        """Choices of the first groups with which these can be packed."""
        self._tried, self._sure = 0, True

    def pack(self, quotas: Sequence[Quota], *, exactly: bool) -> Packing:
        """Return the first packing that satisfies the *quotas*, else the fullest one found."""
        nothing = np.zeros((len(self._items), len(self._ground.rows)), dtype=np.int64)
        best = Packing(nothing)
        chosen = [0] * len(self._choices)
        left = all(self._choices)
        while left and self._tried < PACKINGS:
            packing = self._pack(chosen, quotas, exactly=exactly)
            if packing.satisfies(self._items, quotas):
                return packing
            if packing.placed.sum() > best.placed.sum():
                best = packing
            left = self._advance(chosen, self._wrong(chosen, quotas, exactly=exactly))
        best.exact = self._sure and not left
        return best

    def _wrong(self, chosen: Sequence[int], quotas: Sequence[Quota], *, exactly: bool) -> int:
        """Return the group with which the choices fail already, whatever comes after it."""
        for number in range(self._last):
            begin = tuple(chosen[: number + 1])
            if begin in self._held:
                continue
            first = [quota if g <= number else NOBODY for g, quota in enumerate(quotas)]
            if not self._pack(chosen, first, exactly=exactly).satisfies(self._items, first):
                return number
            self._held.add(begin)
        return self._last

    def _pack(self, chosen: Sequence[int], quotas: Sequence[Quota], *, exactly: bool) -> Packing:
        masks = []
        for item, open_to in zip(self._items, self._ground.eligible, strict=True):
            mask = self._choices[item.group][chosen[item.group]]
            wanted = open_to if quotas[item.group].want else np.zeros_like(open_to)
            masks.append(wanted if mask is None else wanted & mask)
        ground = replace(self._ground, eligible=masks)
        packing = pack(self._items, quotas, ground, exactly=exactly)
        self._tried += 1
        self._sure &= packing.exact
        return packing

    def _advance(self, chosen: list[int], wrong: int) -> bool:
        """Go on to the next choices that differ for a group up to *wrong*; False: there is none.

        Of groups that are alike the later one is never given an earlier choice: that would be
        the same with their names exchanged.
        """
        for number in range(wrong, -1, -1):
            if chosen[number] + 1 == len(self._choices[number]):
                continue
            chosen[number] += 1
            for later in range(number + 1, len(chosen)):
                twin = self._twin[later]
                chosen[later] = 0 if twin is None else chosen[twin]
            return True
        return False


def _kind(problem: Problem, group: int) -> Hashable:
    """Return the same for groups of which each can stand wherever the other can."""
    items = [
        (item.shape.key, item.available, block)
        for item, block in zip(problem.items, problem.blocks, strict=True)
        if item.group == group
    ]
    return problem.group_bounds[group], problem.needs[group], tuple(items)


def _last(kinds: Sequence[Hashable], kind: Hashable) -> int | None:
    """Return the number of the last of *kinds* that is like *kind*."""
    return max((n for n, other in enumerate(kinds) if other == kind), default=None)
