"""What a workload asks for right now, in the form in which it is solved and explained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from lockstep.api.gang import Strategy
from lockstep.api.parallelism import Parallelism
from lockstep.scheduler.core.model.pod_groups import PodGroup
from lockstep.scheduler.core.model.pod_shape import PodShape
from lockstep.scheduler.core.model.topology import Tiers
from lockstep.scheduler.core.model.workload import Member, Workload, WorkloadKey
from lockstep.scheduler.core.packing.node_selection import Ids
from lockstep.scheduler.core.packing.packing import Block, Item, Quota
from lockstep.scheduler.core.packing.quota_headroom import Headroom
from lockstep.scheduler.core.placement.preconditions import unmet_precondition
from lockstep.scheduler.core.quota.inheritance import strategy
from lockstep.scheduler.core.ranks.rank_bundles import Bundle, BundledRanks, bundle_ranks
from lockstep.scheduler.core.resources.device_allocation import NOTHING
from lockstep.scheduler.core.state.cluster import Cluster
from lockstep.scheduler.core.util.array_types import IntArray
from lockstep.scheduler.core.util.unique import distinct


@dataclass(frozen=True, slots=True)
class Bounds:
    """How close members must stay: a tier's number, and the nodes where some stand already."""

    required: int | None
    preferred: int | None
    standing: tuple[int, ...]
    """Rows of the members that have nodes; members that join must share their domain."""


@dataclass(frozen=True, slots=True)
class RankedUnit:
    """Members that stand together, with the ranks that they hold."""

    item: int
    """The item whose places take them; -1 where all of them stand."""
    number: int
    """Which of the item's places they get, in blocks the first of them."""
    ranks: tuple[range, ...]
    row: int
    """Where some of them stand; -1 where none does."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """The ranks of a workload: how they are split, and what stands together, in rank order."""

    split: Parallelism
    workloads: tuple[RankedUnit, ...]


@dataclass
class Problem:
    """Items to be packed, what each group needs, and within which bounds."""

    items: list[Item]
    members: list[list[Member]]
    """For each item its pending members, in the order in which places are given out."""
    bundles: list[int]
    """For each item how many of its members one place takes."""
    blocks: list[Block | None]
    """For each item within which domains its places must come in whole blocks, if any."""
    needs: list[Quota]
    bounds: Bounds
    group_bounds: list[Bounds]
    strategy: Strategy | None
    """How nodes are chosen; none is what suits best."""
    policy: str = ""
    """The NodePolicy whose tiers are filled in order, empty for none."""
    ranked: Ranked | None = None
    """How the members hold ranks, where the workload states its parallelism."""
    headroom: Sequence[Headroom] = ()
    """What its queue may still use of resources for which members count by node (row)."""
    wants: list[Quota] = field(init=False)
    """The same with everything that is wanted taken as needed."""

    def __post_init__(self) -> None:
        self.wants = [Quota(quota.want, quota.want) for quota in self.needs]

    @property
    def spread(self) -> bool:
        """Return whether the members are to use many nodes."""
        return self.strategy == "Spread"

    @cached_property
    def single(self) -> bool:
        """Return whether this is one pod that may stand anywhere."""
        return (
            len(self.items) == 1
            and self.needs[0].want == 1
            and self.bounds == _FREE
            and self.group_bounds[0] == _FREE
            and self.ranked is None
            and not self.policy
        )

    @cached_property
    def elastic(self) -> bool:
        """Return whether more members are wanted than needed."""
        return self.needs != self.wants

    @property
    def least(self) -> Problem:
        """Return the same without the members that the workload can do without."""
        if not self.elastic:
            return self
        return replace(self, needs=[Quota(one.need, one.need) for one in self.needs])

    @cached_property
    def signature(self) -> tuple[object, ...]:
        """Return what decides the outcome: equal signatures fail or fit alike."""
        return (
            tuple((item.shape.key, item.group, item.available) for item in self.items),
            tuple(self.bundles),
            tuple(self.blocks),
            tuple(self.needs),
            self.bounds,
            tuple(self.group_bounds),
            self.strategy,
        )


_FREE = Bounds(None, None, ())


def problem_of(cluster: Cluster, workload: Workload) -> Problem:
    """Return what the workload's pending members ask for."""
    builder = _Builder(cluster, workload)
    roll = bundle_ranks(workload)
    if roll is None or roll.size == 1:
        for number, pod_group in enumerate(workload.pod_groups):
            builder.add_members(number, pod_group)
    else:
        builder.add_bundles(roll)
    wish = workload.wish
    return Problem(
        builder.items,
        builder.members,
        builder.bundles,
        builder.blocks,
        builder.needs,
        _bounds(cluster, wish.required, wish.preferred, workload.bound),
        builder.group_bounds,
        strategy_of(cluster, workload),
        cluster.policies.chosen(workload.node_policy, workload.queue),
        builder.ranked(roll) if roll is not None else None,
    )


def problem_again(
    cluster: Cluster, workload: Workload, members: Sequence[Member], *, others: bool = False
) -> Problem:
    """Return what a workload asks for once *members* of it wait again; *others* stay as they are
    where that is said, and are gone otherwise.
    """
    again = Workload(workload.key)
    again.adopt(workload.gang)
    there = workload.members if others else {}
    again.members = there | {
        one.name: replace(one, node="", grant=NOTHING, account=None) for one in members
    }
    return problem_of(cluster, again)


def strategy_of(cluster: Cluster, workload: Workload) -> Strategy | None:
    """Return the strategy that a workload names, else its queue."""
    return workload.strategy or strategy(cluster.ledger.specs, workload.queue)


class _Builder:
    """Collects the items of a problem group by group."""

    def __init__(self, cluster: Cluster, workload: Workload) -> None:
        self._cluster = cluster
        self._workload = workload
        self.items: list[Item] = []
        self.members: list[list[Member]] = []
        self.bundles: list[int] = []
        self.blocks: list[Block | None] = []
        self.needs: list[Quota] = []
        self.group_bounds: list[Bounds] = []
        self._begun: list[Bundle] = []
        self._place: dict[tuple[str, str], tuple[int, int]] = {}
        """By the first member of a place its item and its number among the places of that."""

    def add_members(self, number: int, pod_group: PodGroup[Member]) -> None:
        """Add a group whose members are placed one by one."""
        for shape, alike in _alike(sorted(pod_group.pending, key=lambda m: m.order)).items():
            self._add(shape, number, [(member,) for member in alike])
        self._close(pod_group, Quota(pod_group.need, pod_group.want))

    def add_bundles(self, roll: BundledRanks) -> None:
        """Add the groups of a roll as one, its bundles whole, and the other groups as they are."""
        ranked = sorted({group for bundle in roll.bundles for group in bundle.groups})
        for number, pod_group in enumerate(self._workload.pod_groups):
            if number not in ranked:
                self.add_members(number, pod_group)
            elif number != ranked[0]:
                self._close(pod_group, Quota(0, 0))
            else:
                pod_groups = [self._workload.pod_groups[group] for group in ranked]
                self._add_roll(number, pod_group, pod_groups, roll)
        self._complete(self._cluster.table.tiers.nvlink)

    def _add_roll(
        self,
        number: int,
        pod_group: PodGroup[Member],
        ranked: list[PodGroup[Member]],
        roll: BundledRanks,
    ) -> None:
        waiting = [bundle for bundle in roll.bundles if bundle.waiting]
        # Those that have begun come first: no other pod can complete them.
        waiting.sort(key=lambda bundle: not bundle.standing)
        level = self._cluster.table.tiers.nvlink
        need, want = sum(m.need for m in ranked), sum(m.want for m in ranked)
        if level is None:
            for shape, alike in self._by_shape(waiting).items():
                self._add(shape, number, [bundle.waiting for bundle in alike])
            sizes = [len(bundle.waiting) for bundle in waiting]
            self._close(pod_group, Quota(_places(sizes, need), _places(sizes, want)))
            return
        self._begun = [bundle for bundle in waiting if bundle.standing]
        whole = [bundle for bundle in waiting if len(bundle.waiting) == roll.size]
        members = [(member,) for bundle in whole for member in bundle.waiting]
        if members:
            self._add(members[0][0].shape, number, members, (level, roll.size))
        begun = sum(len(bundle.waiting) for bundle in self._begun)
        need, want = need - begun, want - begun
        sizes = [roll.size] * len(whole)
        self._close(
            pod_group, Quota(_places(sizes, need) * roll.size, _places(sizes, want) * roll.size)
        )

    def _complete(self, level: int | None) -> None:
        """Add what is missing of bundles that have begun in a domain, each as a group."""
        rows = self._cluster.table.rows
        for bundle in self._begun:
            group, number = len(self.needs), len(bundle.waiting)
            for shape, alike in _alike(bundle.waiting).items():
                self._add(shape, group, [(member,) for member in alike])
            standing = tuple(sorted({rows[m.node] for m in bundle.standing if m.node in rows}))
            self.needs.append(Quota(number, number))
            self.group_bounds.append(Bounds(level, None, standing))

    def _by_shape(self, bundles: list[Bundle]) -> dict[PodShape, list[Bundle]]:
        found: dict[PodShape, list[Bundle]] = {}
        for bundle in bundles:
            node = bundle.standing[0].node if bundle.standing else ""
            parts = [member.shape for member in bundle.waiting]
            found.setdefault(self._cluster.shapes.together(parts, node), []).append(bundle)
        return found

    def _add(
        self,
        shape: PodShape,
        group: int,
        places: Sequence[tuple[Member, ...]],
        block: Block | None = None,
    ) -> None:
        for number, place in enumerate(places):
            self._place[place[0].key] = len(self.items), number
        self.items.append(Item(shape, group, len(places)))
        self.members.append([member for place in places for member in place])
        self.bundles.append(len(places[0]))
        self.blocks.append(block)

    def _close(self, pod_group: PodGroup[Member], quota: Quota) -> None:
        self.needs.append(quota)
        wish = pod_group.group.wish
        self.group_bounds.append(
            _bounds(self._cluster, wish.required, wish.preferred, pod_group.bound)
        )

    def ranked(self, roll: BundledRanks) -> Ranked:
        """Return where in the problem the bundles of a roll stand."""
        rows = self._cluster.table.rows
        workloads = []
        for bundle in roll.bundles:
            standing = [rows[m.node] for m in bundle.standing if m.node in rows]
            item, number = self._place.get(
                bundle.waiting[0].key if bundle.waiting else ("", ""), (-1, -1)
            )
            if item >= 0 or standing:
                workloads.append(
                    RankedUnit(item, number, bundle.ranks, standing[0] if standing else -1)
                )
        return Ranked(roll.split, tuple(workloads))


def _alike(members: Sequence[Member]) -> dict[PodShape, list[Member]]:
    found: dict[PodShape, list[Member]] = {}
    for member in members:
        found.setdefault(member.shape, []).append(member)
    return found


def _places(sizes: Sequence[int], members: int) -> int:
    """Return how many of the first places it takes to hold so many members."""
    held = 0
    for number, size in enumerate(sizes):
        if held >= members:
            return number
        held += size
    return len(sizes)


def _bounds(
    cluster: Cluster, required: str | None, preferred: str | None, bound: Sequence[Member]
) -> Bounds:
    if not (required or preferred or bound):
        return _FREE
    tiers, rows = cluster.table.tiers, cluster.table.rows
    standing: tuple[int, ...] = ()
    if bound:
        standing = tuple(sorted({rows[m.node] for m in bound if m.node in rows}))
    return Bounds(
        tiers.level(required) if required else None,
        tiers.level(preferred) if preferred else None,
        standing,
    )


def pinned(ids: Ids, standing: Sequence[int]) -> IntArray:
    """Return the domains in which the members that have nodes stand."""
    return distinct(ids[list(standing)]).astype(np.int64)


class ProblemCache:
    """What workloads ask for, each kept for as long as nothing that it follows from has changed.

    Most of what waits is looked at often before its turn.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._known: dict[WorkloadKey, tuple[list[PodGroup[Member]], Tiers, Problem]] = {}

    def of(self, workload: Workload) -> Problem | None:
        """Return what a workload asks for; None where it is blocked by itself."""
        known = self._known.get(workload.key)
        pod_groups, tiers = workload.pod_groups, self._cluster.table.tiers
        if known is not None and known[0] is pod_groups and known[1] is tiers:
            return known[2]
        if unmet_precondition(self._cluster, workload) is not None:
            return None
        problem = problem_of(self._cluster, workload)
        if not workload.bound:  # else it also follows from where the members' nodes stand
            self._known[workload.key] = (pod_groups, tiers, problem)
        return problem

    def forget(self, key: WorkloadKey) -> None:
        """Keep nothing of a workload that does not wait any more."""
        self._known.pop(key, None)
