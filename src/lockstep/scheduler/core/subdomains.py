"""Which of the domains inside a domain the groups go to that have wishes of their own.

Groups compete for the same nodes, so a choice for each of them counts only when all members have
been packed. Choices are tried in order, the first group's changing last. Where the first groups do
not fit as they were chosen, nothing that begins like that is tried again.

Groups whose nodes have nothing in common do not compete: whether they fit is looked at apart, and
once for all choices of the others.
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
Together = tuple[tuple[int, int], ...]
"""Groups that compete for nodes, each with the number of its choice."""


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
        self._several = [number for number, found in enumerate(choices) if len(found) > 1]
        self._last = max(self._several, default=0)
        """The last group that has a choice: what fails before it fails however that one goes."""
        self._areas: dict[tuple[int, int], BoolArray] = {}
        self._known: dict[Together, Packing] = {}
        """What became of groups that compete, with what was chosen for them."""
        self._tried, self._sure = 0, True

    def pack(self, quotas: Sequence[Quota], *, exactly: bool) -> Packing:
        """Return the first packing that satisfies the *quotas*, else the fullest one found."""
        nothing = np.zeros((len(self._items), len(self._ground.rows)), dtype=np.int64)
        best = Packing(nothing)
        chosen = [0] * len(self._choices)
        left = all(self._choices)
        if left and not self._several:
            return self._pack(chosen, quotas, exactly=exactly)
        while left and self._tried < PACKINGS:
            packing, wrong = self._look(chosen, quotas, exactly=exactly)
            if packing.satisfies(self._items, quotas):
                return packing
            if packing.placed.sum() > best.placed.sum():
                best = packing
            left = self._advance(chosen, wrong)
        best.exact = self._sure and not left
        return best

    def _look(
        self, chosen: Sequence[int], quotas: Sequence[Quota], *, exactly: bool
    ) -> tuple[Packing, int]:
        """Return the packing with these choices; it also says which group they fail with already.

        What fails so soon fails however it goes on: the search for a way for all would be idle.
        """
        quick = self._pack(chosen, quotas, exactly=False)
        if quick.satisfies(self._items, quotas):
            return quick, self._last
        wrong = self._wrong(chosen, quotas, exactly=exactly)
        if wrong is None:
            return self._pack(chosen, quotas, exactly=exactly), self._last
        apart, seen = np.zeros_like(quick.counts), set[int]()
        for number in range(len(chosen) - 1, -1, -1):
            if number not in seen:
                together = self._together(chosen, number)
                apart += self._packed(together, quotas, exactly=exactly).counts
                seen.update(group for group, _ in together)
        full = Packing(apart)
        return (full if full.placed.sum() > quick.placed.sum() else quick), min(wrong, self._last)

    def _wrong(
        self, chosen: Sequence[int], quotas: Sequence[Quota], *, exactly: bool
    ) -> int | None:
        """Return the group with which the choices fail already, whatever comes after it."""
        for number in range(len(chosen)):
            together = self._together(chosen, number)
            packing = self._packed(together, quotas, exactly=exactly)
            if not packing.satisfies(self._items, _only(together, quotas)):
                return number
        return None

    def _together(self, chosen: Sequence[int], number: int) -> Together:
        """Return a group, and which of those before it compete with it, with what they chose.

        Limits are for all groups together, and who competes for them is not told apart.
        """
        found = {number}
        area = self._area(number, chosen[number])
        before = len(found) - 1
        while before < len(found):
            before = len(found)
            for other in range(number):
                own = self._area(other, chosen[other])
                if other not in found and (self._ground.headroom or bool((own & area).any())):
                    found.add(other)
                    area = area | own
        return tuple((group, chosen[group]) for group in sorted(found))

    def _area(self, group: int, choice: int) -> BoolArray:
        """Return which nodes are open to some member of a group."""
        if (group, choice) not in self._areas:
            own = [
                open_to
                for item, open_to in zip(self._items, self._ground.eligible, strict=True)
                if item.group == group
            ]
            mask = self._choices[group][choice]
            area = np.logical_or.reduce(own)
            self._areas[group, choice] = area if mask is None else area & mask
        return self._areas[group, choice]

    def _packed(self, together: Together, quotas: Sequence[Quota], *, exactly: bool) -> Packing:
        """Return the packing of these groups alone."""
        if together not in self._known:
            chosen = [0] * len(self._choices)
            for group, choice in together:
                chosen[group] = choice
            own = _only(together, quotas)
            self._known[together] = self._pack(chosen, own, exactly=exactly)
        return self._known[together]

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


def _only(together: Together, quotas: Sequence[Quota]) -> list[Quota]:
    """Return the quotas of some groups, and none for the others."""
    groups = {group for group, _ in together}
    return [quota if group in groups else NOBODY for group, quota in enumerate(quotas)]


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
