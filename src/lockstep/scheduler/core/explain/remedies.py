"""What would let a waiting workload start, tried out before it is said."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from lockstep.scheduler.core.explain.filter_results import FailedFilter, FilterResults
from lockstep.scheduler.core.model.decisions import Verdict
from lockstep.scheduler.core.model.topology import NO_DOMAIN
from lockstep.scheduler.core.model.workload import Member, Workload
from lockstep.scheduler.core.packing.packing import Item
from lockstep.scheduler.core.packing.solver import exceeds
from lockstep.scheduler.core.placement import admission
from lockstep.scheduler.core.placement.group_domains import first_nodes
from lockstep.scheduler.core.placement.problem import Bounds, Problem
from lockstep.scheduler.core.placement.search import EVERYWHERE, Domain, Search
from lockstep.scheduler.core.quota.supposed import Supposed
from lockstep.scheduler.core.resources import wording
from lockstep.scheduler.core.scoring.feasibility import (
    FixedFit,
    lifted,
    members_fit,
    unaligned,
)
from lockstep.scheduler.core.scoring.node_filters import SIMULATED
from lockstep.scheduler.core.state.cluster import Cluster
from lockstep.scheduler.core.state.node_usage import held_by
from lockstep.scheduler.core.util.array_types import IntArray

DOMAINS_EMPTIED = 4
"""Domains tried with no other workload in them, those that would have the most room first."""
BY_REASON = {
    "NoNodes": "Add nodes to the cluster; on one machine `lockstep up --simulate SPEC` makes some.",
    "NoNodeMatches": "Change the node selector and affinity of the pods, or add nodes that meet "
    "them; `kubectl get nodes --show-labels` shows the labels that there are.",
    "TooLargeForNodes": "Ask for less in each pod, or add larger nodes; `lockstep get nodes` shows "
    "how large they are.",
    "NotAlignable": "Drop the alignment, or add nodes that can align the devices of such a pod.",
    "BadAlignment": "Write some of nvlink, pcie and numa into the alignment, joined by commas.",
    "NoDomain": "Label the nodes for that tier, or require another tier; "
    "`lockstep get topology/default -o yaml` shows the tiers.",
    "UnknownTier": "Require a tier that the Topology has, or add the tier to the Topology; "
    "`lockstep get topology/default -o yaml` shows the tiers.",
    "MembersApart": "Delete the pods that stand apart, or drop the required tier.",
    "MembersMissing": "Create the missing pods: a gang starts whole.",
    "Gated": "Remove the schedulingGates of the pods; the controller that set them does so itself.",
}
"""What a reason calls for, where nothing can be tried out."""


def with_remedy(verdict: Verdict) -> Verdict:
    """Return the verdict with what its reason calls for, unless it says so itself."""
    return replace(verdict, remedy=verdict.remedy or BY_REASON.get(verdict.reason, ""))


class Remedies:
    """Changes tried on one problem that has no place now."""

    def __init__(self, cluster: Cluster, workload: Workload, problem: Problem) -> None:
        self._cluster = cluster
        self._workload = workload
        self._problem = problem
        self._when_empty: dict[tuple[int, int], bool | None] = {}
        """By level and number of a domain, whether it would hold the workload by itself."""

    def describe(self, view: FilterResults, domain: Domain | None) -> str:
        """Return in words what would help, and what would not; *domain* is the best one."""
        parts = [self._lifting(view)]
        if domain is not None and self.holds_when_empty(domain) is False:
            there = "the cluster" if domain.level == EVERYWHERE else "that domain"
            search = self._undisturbed()
            capped = search is None or search.problem.headroom
            within = " within its queue's limits" if capped else ""
            parts.append(f"even empty, {there} would not hold it{within}")
        if domain is not None and self.starts_without_tier():
            parts.append("without the required tier it would start now")
        if self.starts_unaligned():
            number = wording.count(self.nodes_unaligned(), "node")
            parts.append(
                f"with its devices' alignment preferred instead of required, {number} would have "
                "room for such a pod and it would start now"
            )
        return "; ".join(part for part in parts if part)

    def sentence(self, view: FilterResults, domain: Domain) -> str:
        """Return what would change it, each of the ways tried out; *domain* is the best one."""
        ways = []
        most = _roomiest(view)
        if most is not None and self.starts_without(most.words):
            ways.append(f"the use of the nodes {most.words}")
        if self.starts_without_tier():
            ways.append("no required tier")
        if self.starts_unaligned():
            ways.append("alignment preferred instead of required")
        emptied = self.emptied(domain)
        if emptied is not None:
            ways.append(f"room {self.inside(emptied)} when others end")
        else:
            ways.append(f"fewer or smaller pods, or more nodes {self.inside(domain)}")
        return wording.listing(ways, "or")

    def inside(self, domain: Domain) -> str:
        """Return in words where a domain is."""
        if domain.level == EVERYWHERE:
            return "in the cluster"
        tier = self._cluster.table.tiers.indices[domain.level]
        return f"under {tier.title(domain.number)}"

    def emptied(self, best: Domain) -> Domain | None:
        """Return a domain of the same tier that holds the workload when it is empty."""
        if self.holds_when_empty(best):
            return best
        if best.level == EVERYWHERE or self._problem.bounds.standing:
            return None
        others = (one for one in self._roomiest_domains(best.level) if one.number != best.number)
        return next((one for one in others if self.holds_when_empty(one)), None)

    def any_emptied(self) -> Domain | None:
        """Return a domain that holds the workload when it is empty; None for none."""
        search = Search(self._cluster, self._problem)
        level, standing = search.levels()[-1], self._problem.bounds.standing
        if level == EVERYWHERE:
            domains = iter([search.everywhere()])
        elif standing:
            tier = self._cluster.table.tiers.indices[level]
            domains = iter([search.domain(level, int(tier.ids[standing[0]]))])
        else:
            domains = self._roomiest_domains(level)
        return next((one for one in domains if self.holds_when_empty(one)), None)

    def _roomiest_domains(self, level: int) -> Iterator[Domain]:
        """Yield the few domains of a tier that have the most room when empty."""
        table, search = self._cluster.table, Search(self._cluster, self._problem)
        tier = table.tiers.indices[level]
        inside = tier.ids != NO_DOMAIN
        room = np.zeros(len(tier))
        everybody_gone = table.emptied(np.arange(table.capacity))
        for item, fit in zip(self._problem.items, search.fits, strict=True):
            empty = members_fit(everybody_gone, item.shape) * fit.eligible
            held = np.bincount(tier.ids[inside], weights=empty[inside], minlength=len(tier))
            room += np.minimum(held, item.available)
        order = np.lexsort((first_nodes(table, level), -room))[:DOMAINS_EMPTIED]
        for number in order:
            yield search.domain(level, int(number))

    def _lifting(self, view: FilterResults) -> str:
        """Return which single requirement keeps the most room away, and whether that is all."""
        most = _roomiest(view)
        if most is None:
            return ""
        room = wording.count(most.would_hold, "such pod")
        enough = ", which would be enough" if self.starts_without(most.words) else ""
        return f"the nodes {most.words} have room for {room}{enough}"

    def starts(self) -> bool:
        """Return whether the workload would start as everything is."""
        return self._places(self._problem)

    def starts_without(self, requirement: str) -> bool:
        """Return whether the workload would start were one requirement on nodes not there."""
        table = self._cluster.table
        fits = [lifted(table, item.shape, requirement) for item in self._problem.items]
        return self._places(self._problem, fits)

    def starts_without_tier(self) -> bool:
        """Return whether the workload would start if its members, or a group's, may stand
        anywhere.
        """
        bounds, groups = self._problem.bounds, self._problem.group_bounds
        bound = [own for own in (bounds, *groups) if own.required is not None and not own.standing]
        if bounds.standing or not bound:
            return False
        anywhere = Bounds(None, None, ())
        freed = [own if own.standing else anywhere for own in groups]
        free = replace(self._problem, bounds=anywhere, group_bounds=freed)
        return self._places(free)

    def starts_unaligned(self) -> bool:
        """Return whether the workload would start if its devices need not be aligned."""
        items = self._problem.items
        if not any(item.shape.alignment.required for item in items):
            return False
        lax = replace(self._problem, items=[replace(i, shape=i.shape.lax()) for i in items])
        return self._places(lax, self._unaligned())

    def nodes_unaligned(self) -> int:
        """Return how many nodes have room for some pod whose devices need not be aligned."""
        return int(np.logical_or.reduce([fit.count > 0 for fit in self._unaligned()]).sum())

    def _unaligned(self) -> list[FixedFit]:
        table = self._cluster.table
        return [unaligned(table, item.shape) for item in self._problem.items]

    def fits_unaligned_when_empty(self, item: Item) -> bool:
        """Return whether a pod that must be aligned would fit some empty node if it need not."""
        if not item.shape.alignment.required:
            return False
        table, fit = self._cluster.table, unaligned(self._cluster.table, item.shape)
        empty = table.emptied(np.arange(table.capacity))
        return bool((members_fit(empty, item.shape.lax()) * fit.eligible).any())

    def holds_when_empty(self, domain: Domain) -> bool | None:
        """Return whether a domain would hold the workload if it were empty, and its queue
        as well.

        None where there are too many ways to be sure.
        """
        asked = domain.level, domain.number
        if asked not in self._when_empty:
            self._when_empty[asked] = self._holds_when_empty(domain)
        return self._when_empty[asked]

    def _holds_when_empty(self, domain: Domain) -> bool | None:
        problem, search = self._problem, self._undisturbed()
        if search is None:
            return False
        ground = search.ground(domain)
        ground.table, ground.rows = self._left(domain), np.arange(len(domain.rows))
        ground.room = [members_fit(ground.table, item.shape) for item in problem.items]
        if exceeds(problem.items, problem.needs, ground):
            return False
        packing = search.pack_ground(domain, ground, problem.needs)
        holds = packing.satisfies(problem.items, problem.needs)
        return holds if holds or packing.exact else None

    def _undisturbed(self) -> Search | None:
        """Return the search within the queue's limits without any other workload."""
        own = [member for member in self._workload.bound if member.account is not None]
        with Supposed(self._cluster.ledger) as quota:
            quota.leave_alone(own)
            return admission.search(self._cluster, self._workload, self._problem)

    def _left(self, domain: Domain) -> IntArray:
        """Return what a domain's nodes would have free with only the workload's own members
        there.
        """
        table = self._cluster.table
        found = table.emptied(domain.rows)
        there: dict[int, list[Member]] = {}
        for member in self._workload.bound:
            row = table.rows.get(member.node)
            if row is not None:
                there.setdefault(row, []).append(member)
        alone = table.fork() if there else table
        for place in np.flatnonzero(np.isin(domain.rows, list(there))):
            row = int(domain.rows[place])
            alone.held[:, row] = 0
            alone.vacate(row)
            for member in there[row]:
                alone.charge(row, member.shape.columns, member.shape.amounts, last=False)
            alone.hold_devices(row, held_by(there[row]))
            found[:, place] = alone.free[:, row]
        return found

    def _places(self, problem: Problem, fits: Sequence[FixedFit] | None = None) -> bool:
        search = admission.search(self._cluster, self._workload, problem, fits)
        return search is not None and search.holds()


def _roomiest(view: FilterResults) -> FailedFilter | None:
    """Return the requirement that alone keeps the most room away.

    Nodes that are simulated would take the workload and execute nothing: they help it in no way.
    """
    found = [one for one in view.barred if one.would_hold and one.words != SIMULATED]
    return max(found, key=lambda one: one.would_hold, default=None)
