"""Which of the domains inside a domain the groups go to that have wishes of their own.

Groups compete for the same nodes, so a choice for each of them counts only when all members have
been packed. Choices are tried in order, the first group's changing last. Where the first groups do
not fit as they were chosen, nothing that begins like that is tried again.

Groups whose nodes have nothing in common do not compete: whether they fit is looked at apart, and
once for all choices of the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import replace
from math import inf

import numpy as np

from lockstep.scheduler.core.model.node_table import NodeTable
from lockstep.scheduler.core.model.topology import NO_DOMAIN
from lockstep.scheduler.core.packing.node_selection import Ids
from lockstep.scheduler.core.packing.packing import DomainNodes, Packing, Quota
from lockstep.scheduler.core.packing.solver import pack
from lockstep.scheduler.core.placement.problem import Problem, pinned
from lockstep.scheduler.core.util.array_types import BoolArray, IntArray

PACKINGS = 256
"""Packings that are tried within one domain before the search gives up."""
BETTER = 16
"""Further choices tried for more of the members that are wanted beyond what is needed."""
Choice = BoolArray | None
"""Nodes that are open to a group; None: all that are open to its members."""
NO_PODS = Quota(0, 0)
Together = tuple[tuple[int, int], ...]
"""Groups that compete for nodes, each with the number of its choice."""


class GroupChoices:
    """The domains inside one domain that the groups of a problem may go to."""

    def __init__(self, table: NodeTable, problem: Problem, level: int, ground: DomainNodes) -> None:
        """*ground* are the nodes of a domain of tier *level*."""
        self._table = table
        self._problem = problem
        self._level = level
        self._ground = ground

    def of(self, group: int, quota: Quota) -> list[Choice]:
        """Return the sub-domains that have room for what a group needs, the best first.

        Those go first that hold most of what is wanted beyond that, and of those the tightest.
        """
        bounds = self._problem.group_bounds[group]
        level = bounds.required if bounds.required is not None else bounds.preferred
        if level is None:
            return [None]
        tier = self._table.tiers.indices[level].ids
        ids = tier[self._ground.rows]
        if level <= self._level:
            labelled = ids != NO_DOMAIN
            return [None if bounds.required is None or labelled.all() else labelled]
        room = self._room(group, ids)
        keep = room >= quota.need
        if bounds.standing:
            stood = pinned(tier, bounds.standing)
            alone = len(stood) == 1 and stood[0] != NO_DOMAIN
            keep &= (np.arange(len(room)) == stood[0]) if alone else False
        found = np.flatnonzero(keep)
        held = np.minimum(room, quota.want) if quota.need < quota.want else np.zeros_like(room)
        order = np.lexsort((first_nodes(self._table, level)[found], room[found], -held[found]))
        choices: list[Choice] = [ids == number for number in found[order]]
        return choices if bounds.required is not None else [*choices, None]

    def _room(self, group: int, ids: Ids) -> IntArray:
        """Return by sub-domain, which *ids* number, how many members of a group fit at most."""
        room = np.zeros(int(ids.max(initial=-1)) + 1, dtype=np.int64)
        inside = ids != NO_DOMAIN
        for number, item in enumerate(self._problem.items):
            if item.group == group:
                fit = self._ground.room[number] * self._ground.eligible[number]
                held = np.bincount(ids[inside], weights=fit[inside], minlength=len(room))
                room += np.minimum(held.astype(np.int64), item.available)
        return room


def first_nodes(table: NodeTable, level: int) -> IntArray:
    """Return for each domain of a tier the rank of its first node: a stable order of them."""
    tier, rank = table.tiers.indices[level], table.rank()
    inside = tier.ids != NO_DOMAIN
    first = np.full(len(tier), table.capacity, dtype=np.int64)
    np.minimum.at(first, tier.ids[inside], rank[inside])
    return first


class GroupDomains:
    """The search for a choice for every group with which all of them can be packed."""

    def __init__(
        self, problem: Problem, ground: DomainNodes, choices: Sequence[Sequence[Choice]]
    ) -> None:
        """Take for each group of a problem its *choices*, best first."""
        self._items = problem.items
        self._ground = ground
        self._choices = choices
        self._kinds = [_kind(problem, group) for group in range(len(choices))]
        self._twin = [_last(self._kinds[:number], kind) for number, kind in enumerate(self._kinds)]
        self._several = [number for number, found in enumerate(choices) if len(found) > 1]
        self._last = max(self._several, default=0)
        """The last group that has a choice: what fails before it fails however that one goes."""
        self._areas: dict[tuple[int, int], int] = {}
        self._known: dict[Together, Packing] = {}
        """What became of groups that compete, with what was chosen for them."""
        self._tried, self._sure = 0, True

    def pack(self, quotas: Sequence[Quota], *, exactly: bool) -> Packing:
        """Return a packing that satisfies the *quotas*, else any that does not.

        It is the first one found that holds all that is wanted, else the fullest of the first few.
        """
        return self._search(quotas, exactly=exactly, fully=False)

    def fullest(self, quotas: Sequence[Quota]) -> Packing:
        """Return the first packing that satisfies the *quotas*, else the fullest one found."""
        return self._search(quotas, exactly=True, fully=True)

    def _search(self, quotas: Sequence[Quota], *, exactly: bool, fully: bool) -> Packing:
        chosen = [0] * len(self._choices)
        left = all(self._choices)
        if left and not self._several:
            return self._pack(chosen, quotas, exactly=exactly)
        best = self._nothing()
        hopeless = self._hopeless(quotas)
        if hopeless and not fully:
            return best
        changed = 0
        while left and self._tried < PACKINGS:
            found, wrong = self._look(chosen, changed, quotas, exactly=exactly)
            if found is not None and found.satisfies(self._items, quotas):
                return self._fullest_after(found, chosen, quotas, exactly=exactly)
            if fully:
                packing = found or self._apart(chosen, quotas, exactly=exactly)
                best = max(best, packing, key=lambda one: int(one.placed.sum()))
            changed = self._advance(chosen, wrong)
            left = changed >= 0
        best.exact = hopeless or (self._sure and not left)
        return best

    def _fullest_after(
        self, first: Packing, chosen: list[int], quotas: Sequence[Quota], *, exactly: bool
    ) -> Packing:
        """Return the fullest of a packing that satisfies the quotas and the next few that do."""
        wanted = sum(quota.want for quota in quotas)
        best, most = first, int(first.placed.sum())
        if most == wanted or all(quota.need == quota.want for quota in quotas):
            return best
        for _ in range(BETTER):
            if self._advance(chosen, self._last) < 0 or self._tried >= PACKINGS:
                break
            packing = self._pack(chosen, quotas, exactly=exactly)
            held = int(packing.placed.sum())
            if held > most and packing.satisfies(self._items, quotas):
                best, most = packing, held
            if most == wanted:
                break
        return best

    def _hopeless(self, quotas: Sequence[Quota]) -> bool:
        """Return whether there are more groups that are alike than the nodes they may choose hold.

        The search would exchange them with each other for long before it gave up.
        """
        for kind, times in Counter(self._kinds).items():
            first = self._kinds.index(kind)
            if times > 1 and quotas[first].need and times > self._held(first, quotas[first].need):
                return True
        return False

    def _held(self, group: int, need: int) -> float:
        """Return how many groups like one may be held by its choices at most."""
        own = [number for number, item in enumerate(self._items) if item.group == group]
        ground, held = self._ground, 0
        for mask in self._choices[group]:
            if mask is None:
                return inf
            room = (ground.room[i] * ground.eligible[i] * mask for i in own)
            held += sum(int(members.sum()) for members in room) // need
        return held

    def _nothing(self) -> Packing:
        return Packing(np.zeros((len(self._items), len(self._ground.rows)), dtype=np.int64))

    def _look(
        self, chosen: Sequence[int], changed: int, quotas: Sequence[Quota], *, exactly: bool
    ) -> tuple[Packing | None, int]:
        """Return the packing with these choices; it also says which group they fail with already.

        What fails so soon fails however it goes on: the search for a way for all would be idle,
        and there is no packing. What was chosen for the groups before *changed* has not failed.
        """
        if changed == 0:  # as a rule what is chosen first does for all, and it is seen at once
            quick = self._pack(chosen, quotas, exactly=False)
            if quick.satisfies(self._items, quotas):
                return quick, self._last
        wrong = self._wrong(chosen, changed, quotas, exactly=exactly)
        if wrong is None:
            return self._pack(chosen, quotas, exactly=exactly), self._last
        return None, min(wrong, self._last)

    def _apart(self, chosen: Sequence[int], quotas: Sequence[Quota], *, exactly: bool) -> Packing:
        """Return the packing with these choices of groups that compete, each lot by itself."""
        full, seen = self._nothing(), set[int]()
        for number in range(len(chosen) - 1, -1, -1):
            if number not in seen:
                together = self._together(chosen, number)
                full.counts += self._packed(together, quotas, exactly=exactly).counts
                seen.update(group for group, _ in together)
        return Packing(full.counts)

    def _wrong(
        self, chosen: Sequence[int], changed: int, quotas: Sequence[Quota], *, exactly: bool
    ) -> int | None:
        """Return the group with which the choices fail already, for all groups after it."""
        for number in range(changed, len(chosen)):
            together = self._together(chosen, number)
            packing = self._packed(together, quotas, exactly=exactly)
            if not packing.satisfies(self._items, _only(together, quotas)):
                return number
        return None

    def _together(self, chosen: Sequence[int], number: int) -> Together:
        """Return a group, and which of those before it compete with it, with what they chose.

        Limits are for all groups together, and competitors for them are not told apart.
        """
        found = {number}
        area = self._area(number, chosen[number])
        before = len(found) - 1
        while before < len(found):
            before = len(found)
            for other in range(number):
                own = self._area(other, chosen[other])
                if other not in found and (self._ground.headroom or own & area):
                    found.add(other)
                    area |= own
        return tuple((group, chosen[group]) for group in sorted(found))

    def _area(self, group: int, choice: int) -> int:
        """Return which nodes are open to some member of a group, as a bit each."""
        if (group, choice) not in self._areas:
            own = [
                open_to
                for item, open_to in zip(self._items, self._ground.eligible, strict=True)
                if item.group == group
            ]
            mask = self._choices[group][choice]
            area = np.logical_or.reduce(own)
            area = area if mask is None else area & mask
            self._areas[group, choice] = int.from_bytes(np.packbits(area).tobytes())
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

    def _advance(self, chosen: list[int], wrong: int) -> int:
        """Go on to the next choices that differ for a group up to *wrong*, the first that does.

        It is -1 where there are none.

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
            return number
        return -1


def _only(together: Together, quotas: Sequence[Quota]) -> list[Quota]:
    """Return the quotas of some groups, and none for the others."""
    groups = {group for group, _ in together}
    return [quota if group in groups else NO_PODS for group, quota in enumerate(quotas)]


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
