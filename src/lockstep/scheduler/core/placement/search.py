"""Where a workload goes: the smallest domain that holds it, the nodes in it, the devices on
them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Protocol

import numpy as np

from lockstep.scheduler.core.model.decisions import Assignment, Placement
from lockstep.scheduler.core.model.node_table import NodeTable
from lockstep.scheduler.core.model.pod_shape import PodShape
from lockstep.scheduler.core.model.topology import NO_DOMAIN
from lockstep.scheduler.core.model.workload import Member, WorkloadKey
from lockstep.scheduler.core.packing.device_assignment import deal
from lockstep.scheduler.core.packing.packing import DomainNodes, Packing, Quota
from lockstep.scheduler.core.packing.quota_headroom import uneven
from lockstep.scheduler.core.placement.capacity_bounds import enough_room
from lockstep.scheduler.core.placement.group_domains import GroupChoices, GroupDomains, first_nodes
from lockstep.scheduler.core.placement.node_preferences import selections
from lockstep.scheduler.core.placement.problem import Problem, pinned
from lockstep.scheduler.core.placement.rank_assignment import seated
from lockstep.scheduler.core.placement.tie_break import TieBreak
from lockstep.scheduler.core.resources.alignment import concessions
from lockstep.scheduler.core.resources.columns import GPU_COLUMN
from lockstep.scheduler.core.resources.device_allocation import Spot
from lockstep.scheduler.core.scoring.feasibility import Fit, Fits, FixedFit, members_fit
from lockstep.scheduler.core.scoring.strategies import Preference
from lockstep.scheduler.core.state.node_policies import NodePolicies
from lockstep.scheduler.core.util.array_types import BoolArray, IntArray

EVERYWHERE = -1
"""The level of the one domain that holds all nodes."""


@dataclass(slots=True)
class Domain:
    """A candidate: the rows of its nodes, and where it stands in the tiers."""

    level: int
    number: int
    rows: IntArray
    tie: int = 0
    """The same for domains of a tier that are equally tight."""


class State(Protocol):
    """Nodes and what of them is taken, as they are or as they would be."""

    table: NodeTable
    fits: Fits
    policies: NodePolicies


class Search:
    """Looks for a place for one problem over one state."""

    def __init__(self, cluster: State, problem: Problem, fits: Sequence[Fit] | None = None) -> None:
        self.cluster = cluster
        self.table = cluster.table
        self.problem = problem
        if fits is None:
            fits = [cluster.fits.of(item.shape, problem.strategy) for item in problem.items]
        self.fits = fits
        self.tiers_of_policy = cluster.policies.tiers(problem.policy, cluster.table)

    def place(self, workload: WorkloadKey) -> Placement | None:
        """Return where the workload's members go, or None when what it needs does not fit."""
        if self.problem.single:
            return self._place_one(workload)
        found = self._find_liked(self._bands(), self.problem.wants)
        if found is None and self.problem.elastic:
            found = self._find_most()
        if found is None:
            return None
        domain, packing = found
        return Placement(workload, tuple(self._assign(domain, packing)))

    def holds(self) -> bool:
        """Return whether what the workload needs fits."""
        if self.problem.single:
            return bool((self.fits[0].count > 0).any())
        found = self._find_liked(self._bands(), self.problem.needs)
        return found is not None

    def _find_liked(
        self, bands: Sequence[Sequence[int]], quotas: list[Quota]
    ) -> tuple[Domain, Packing] | None:
        """Look band by band, on the nodes that are liked best before all others join them."""
        return next(self._found_liked(bands, quotas), None)

    def _find_most(self) -> tuple[Domain, Packing] | None:
        """Return where what is needed fits with most of what is wanted, on the best liked nodes.

        Not all that is wanted fits. More members go before nodes that are liked better: those
        that are there would not move to them later either.
        """
        best: tuple[Domain, Packing] | None = None
        most, bound = -1, self._bound()
        for found in self._found_liked([self.levels()[-1:]], self.problem.needs):
            placed = int(found[1].placed.sum())
            if placed > most:
                best, most = found, placed
            if most >= bound:
                break
        return best

    def _bound(self) -> int:
        """Return how many members have a place at most, each group counted as if alone."""
        total = 0
        for group, quota in enumerate(self.problem.needs):
            pairs = zip(self.problem.items, self.fits, strict=True)
            room = (min(i.available, int(f.count.sum())) for i, f in pairs if i.group == group)
            total += min(quota.want, sum(room))
        return total

    def _found_liked(
        self, bands: Sequence[Sequence[int]], quotas: list[Quota]
    ) -> Iterator[tuple[Domain, Packing]]:
        """Yield what is found on the nodes liked best, then on more of them, band by band."""
        # Where not even all nodes have room, no selection of them has.
        if not self._any_room(bands[-1][-1], quotas):
            return
        choices = list(selections(self.problem, self.fits, self.tiers_of_policy))
        for band, (fits, mixed) in product(bands, choices):
            levels = band[-1:] if mixed else band
            for search in (*self._aligned(fits), Search(self.cluster, self.problem, fits)):
                found = search._find(levels, quotas)
                if found is not None:
                    yield found

    def _aligned(self, fits: Sequence[Fit]) -> Iterator[Search]:
        """Yield searches where devices are as close as members would rather, then less and less.

        What is given up is given up for all of them.
        """
        shapes = [item.shape for item in self.problem.items]
        wished = frozenset[str]().union(*(shape.alignment.preferred for shape in shapes))
        for kept in concessions(wished)[:-1]:
            yield self._held_to([shape.strict(kept) for shape in shapes], fits)

    def _held_to(self, strict: Sequence[PodShape], fits: Sequence[Fit]) -> Search:
        """Return the search for nodes where members are placed as if they were of other shapes."""
        free = self.table.free
        items = zip(self.problem.items, strict, strict=True)
        wanted = replace(self.problem, items=[replace(item, shape=one) for item, one in items])
        liked = [
            FixedFit(
                fit.eligible,
                np.minimum(fit.count, members_fit(free, shape)),
                fit.liking,
                fit.unmet,
                fit.on_gpus,
            )
            for fit, shape in zip(fits, strict, strict=True)
        ]
        return Search(self.cluster, wanted, liked)

    def _bands(self) -> list[list[int]]:
        """Return the tiers to look through in bands; inside one, liking goes before narrowness.

        How narrow a domain must be was asked for, or follows from the members that have nodes; how
        much narrower it gets is only thrift.
        """
        levels, bounds = self.levels(), self.problem.bounds
        if bounds.standing:
            return [[level] for level in levels]
        wished = [level for level in levels if level >= (bounds.preferred or 0)]
        if bounds.preferred is None or len(wished) in (0, len(levels)):
            return [levels]
        return [wished, levels[len(wished) :]]

    def levels(self) -> list[int]:
        """Return the tiers to look through, narrowest first, the widest allowed one last."""
        bounds, depth = self.problem.bounds, len(self.table.tiers.indices)
        if self.problem.spread:
            start = bounds.preferred if bounds.required is None else bounds.required
            start = EVERYWHERE if start is None else start
        else:
            start = depth - 1
        stop = EVERYWHERE if bounds.required is None else bounds.required
        return list(range(start, stop - 1, -1))

    def _find(self, levels: Sequence[int], quotas: list[Quota]) -> tuple[Domain, Packing] | None:
        # What no domain of the widest tier holds by number alone fits into no narrower one.
        if not self._any_room(levels[-1], quotas):
            return None
        # The exact search is slow where it fails, so it comes after the quick way has been tried
        # on all domains of a tier.
        hard = len(self.problem.items) > 1 or uneven(self.problem.headroom)
        ways = (False, True) if hard else (False,)
        for level, exactly in product(levels, ways):
            found = self._best_of(level, quotas, exactly=exactly)
            if found is not None:
                return found
        return None

    def _best_of(
        self, level: int, quotas: list[Quota], *, exactly: bool
    ) -> tuple[Domain, Packing] | None:
        """Return the tightest domain of a tier that holds the members, and how it does."""
        contest: TieBreak[Domain] = TieBreak(self)
        for domain in self.domains(level, quotas):
            if contest.over(domain):
                break
            if contest.has_one_like(domain):
                continue
            packing = self.pack_into(domain, quotas, exactly=exactly)
            if packing.satisfies(self.problem.items, quotas):
                contest.enter(domain, packing)
        return contest.best

    def _any_room(self, level: int, quotas: Sequence[Quota]) -> bool:
        if level != EVERYWHERE:
            return bool(self.room(level, quotas)[1].any())
        room = np.array([[fit.count.sum()] for fit in self.fits], dtype=np.int64)
        return bool(enough_room(self.problem.items, quotas, self.fits, room).all())

    def domains(self, level: int, quotas: Sequence[Quota]) -> Iterator[Domain]:
        """Yield the domains of a tier that may hold the members, the tightest first.

        A domain is left out when one group alone does not fit into it, or when members that have
        nodes already stand elsewhere.
        """
        if level == EVERYWHERE:
            yield self.everywhere()
            return
        tier = self.table.tiers.indices[level]
        room, enough = self.room(level, quotas)
        standing = self.problem.bounds.standing
        if standing:
            allowed = pinned(tier.ids, standing)
            keep = np.zeros(len(tier), dtype=bool)
            if len(allowed) == 1 and allowed[0] != NO_DOMAIN:
                keep[allowed[0]] = True
            enough &= keep
        candidates = np.flatnonzero(enough)
        if not len(candidates):
            return
        spare = room[:, candidates].sum(axis=0)
        if self.problem.spread:
            spare = -spare
        available = np.array([[item.available] for item in self.problem.items])
        # Where not all that is wanted fits, the domain that holds most of it comes first.
        held = np.minimum(room[:, candidates], available).sum(axis=0)
        short = -held if quotas == self.problem.needs else np.zeros_like(held)
        free, whole = self._free_gpus(level)
        keys = np.stack([whole[candidates], free[candidates], spare, short])
        order = np.lexsort((first_nodes(self.table, level)[candidates], *keys))
        steps = (np.diff(keys[:, order], axis=1) != 0).any(axis=0)
        for number, tie in zip(candidates[order], np.cumsum([0, *steps]), strict=True):
            yield replace(self.domain(level, int(number)), tie=int(tie))

    def everywhere(self) -> Domain:
        """Return the domain of all nodes."""
        return Domain(EVERYWHERE, 0, self._in_order(self.table.live))

    def domain(self, level: int, number: int) -> Domain:
        """Return one domain of a tier."""
        inside = self.table.tiers.indices[level].ids == number
        return Domain(level, number, self._in_order(inside))

    def _in_order(self, inside: BoolArray) -> IntArray:
        """Return rows by name, because row numbers tell in which order nodes became known."""
        rows = np.flatnonzero(inside)
        return rows[np.argsort(self.table.rank()[rows])]

    def room(self, level: int, quotas: Sequence[Quota]) -> tuple[IntArray, BoolArray]:
        """Return per item and domain how many members fit, and which domains hold each group."""
        tier = self.table.tiers.indices[level]
        inside = tier.ids != NO_DOMAIN
        required = self.problem.bounds.required
        if required is not None:
            inside &= self.table.tiers.indices[required].ids != NO_DOMAIN
        ids = tier.ids[inside]
        room = np.zeros((len(self.fits), len(tier)), dtype=np.int64)
        for number, fit in enumerate(self.fits):
            room[number] = np.bincount(ids, weights=fit.count[inside], minlength=len(tier))
        return room, enough_room(self.problem.items, quotas, self.fits, room)

    def _free_gpus(self, level: int) -> tuple[IntArray, IntArray]:
        """Return by domain of a tier the free GPUs, and those of them on nodes not in use."""
        tier, table = self.table.tiers.indices[level], self.table
        inside = tier.ids != NO_DOMAIN
        free = table.free[GPU_COLUMN] * inside
        unused = free * (table.used[GPU_COLUMN] == 0)
        ids = np.where(inside, tier.ids, 0)
        found = [
            np.bincount(ids, weights=amount, minlength=len(tier)).astype(np.int64)
            for amount in (free, unused)
        ]
        return found[0], found[1]

    def ground(self, domain: Domain) -> DomainNodes:
        """Return the nodes of a domain as the packing wants them."""
        rows, tiers = domain.rows, self.table.tiers.indices
        inner = tiers[domain.level + 1 :]
        return DomainNodes(
            table=self.table.free,
            rows=rows,
            room=[fit.count[rows] for fit in self.fits],
            eligible=[fit.eligible[rows] for fit in self.fits],
            liking=[fit.liking[rows] for fit in self.fits],
            rank=self.table.rank()[rows],
            tiers=[tier.ids[rows] for tier in inner],
            spread=self.problem.spread,
            tiers_of_policy=None if self.tiers_of_policy is None else self.tiers_of_policy[rows],
            blocks=[
                None if block is None else (tiers[block[0]].ids[rows], block[1])
                for block in self.problem.blocks
            ],
            headroom=[one.at(rows) for one in self.problem.headroom],
        )

    def pack_into(
        self, domain: Domain, quotas: Sequence[Quota], *, exactly: bool = True
    ) -> Packing:
        """Return a packing of a domain that satisfies, else any that does not."""
        return self.pack_ground(domain, self.ground(domain), quotas, exactly=exactly)

    def pack_ground(
        self, domain: Domain, ground: DomainNodes, quotas: Sequence[Quota], *, exactly: bool = True
    ) -> Packing:
        """Return the packing of a domain whose nodes may have been altered (what-if)."""
        options = GroupChoices(self.table, self.problem, domain.level, ground)
        choices = [options.of(group, quota) for group, quota in enumerate(quotas)]
        return GroupDomains(self.problem, ground, choices).pack(quotas, exactly=exactly)

    def fullest(self, domain: Domain) -> Packing:
        """Return a packing of what is needed that holds as much of it as one can be found to.

        A group that is too large for every sub-domain goes to the one with the most room for it.
        """
        ground, quotas = self.ground(domain), self.problem.needs
        options = GroupChoices(self.table, self.problem, domain.level, ground)
        choices = [
            options.of(group, quota) or options.of(group, Quota(0, 0))[-1:]
            for group, quota in enumerate(quotas)
        ]
        return GroupDomains(self.problem, ground, choices).fullest(quotas)

    def _place_one(self, workload: WorkloadKey) -> Placement | None:
        appeal = self.fits[0].appeal
        best = appeal.max(initial=-np.inf)
        if best == -np.inf:
            return None
        (rows,) = (appeal == best).nonzero()
        row = int(rows[self.table.rank()[rows].argmin()]) if len(rows) > 1 else int(rows[0])
        preference = self.cluster.fits.preference(self.problem.strategy)
        return place_on(self.table, row, workload, self.problem.members[0][0], preference)

    def _assign(self, domain: Domain, packing: Packing) -> Iterator[Assignment]:
        """Give members their places, and those of one node its devices from one neighbourhood."""
        preference = self.cluster.fits.preference(self.problem.strategy)
        for row, members in seated(self, domain, packing):
            name = self.table.name(row)
            grants = deal(self.table, row, [member.shape for member in members], preference)
            for member, grant in zip(members, grants, strict=True):
                yield Assignment(member, Spot(name, grant))


def place_on(
    table: NodeTable,
    row: int,
    workload: WorkloadKey,
    member: Member,
    preference: Preference | None = None,
) -> Placement:
    """Return the placement of one pod on a node that has room for it."""
    grant = deal(table, row, [member.shape], preference)[0]
    return Placement(workload, (Assignment(member, Spot(table.name(row), grant)),))
