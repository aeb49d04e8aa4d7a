"""Why a workload waits, in words and numbers, and what would change it.

Every number comes from the vectors and the packing that place workloads, so an explanation cannot
say one thing while placement does another."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lockstep.api import timestamp
from lockstep.scheduler.core.explain.filter_results import (
    ALIGNED,
    ISOLATED,
    FilterResults,
    filter_results,
)
from lockstep.scheduler.core.explain.preemption_messages import in_words
from lockstep.scheduler.core.explain.quota_messages import quota_verdict
from lockstep.scheduler.core.explain.remedies import Remedies, with_remedy
from lockstep.scheduler.core.explain.resource_holders import holders
from lockstep.scheduler.core.model.decisions import Verdict
from lockstep.scheduler.core.model.pod_shape import PodShape
from lockstep.scheduler.core.model.workload import Workload
from lockstep.scheduler.core.packing.packing import Packing
from lockstep.scheduler.core.placement.group_domains import first_nodes
from lockstep.scheduler.core.placement.preconditions import unmet_precondition
from lockstep.scheduler.core.placement.problem import Problem, problem_of
from lockstep.scheduler.core.placement.search import EVERYWHERE, Domain, Search
from lockstep.scheduler.core.reservations.reserved_quota import own_released
from lockstep.scheduler.core.resources import wording
from lockstep.scheduler.core.resources.columns import is_port
from lockstep.scheduler.core.state.cluster import Cluster

FITS = "Fits"
"""The reason of a workload that only waits for the next decision."""
DOMAINS_PACKED = 4
"""Domains whose packing is worked out in full to find the one that is least short."""


def explain(cluster: Cluster, workload: Workload) -> Verdict:
    """Return why the workload waits now."""
    cluster.settle()
    found = unmet_precondition(cluster, workload)
    nomination = cluster.nominations.get(workload.key)
    if found is None and nomination is not None:
        return Verdict(nomination.purpose, in_words(nomination, cluster))
    if found is None:
        with own_released(cluster, workload.key):
            found = _Inquiry(cluster, workload).verdict()
    return with_remedy(found)


class _Inquiry:
    """The questions asked about one waiting workload."""

    def __init__(self, cluster: Cluster, workload: Workload) -> None:
        self.cluster = cluster
        self.table = cluster.table
        self.workload = workload
        problem = problem_of(cluster, workload)
        if not any(quota.need for quota in problem.needs):
            # The gang stands; what waits are extras, each of which would be welcome alone.
            problem = _one_extra(problem)
        self.problem = problem
        self.search = Search(cluster, problem)
        self.remedies = Remedies(cluster, workload, problem)
        self.level = self.search.levels()[-1]

    def verdict(self) -> Verdict:
        """Return the reason, from the hardest obstacle to the mildest."""
        if not len(self.table):
            return Verdict("NoNodes", "there are no nodes")
        quota = quota_verdict(self.cluster, self.workload, self.problem)
        return self._no_node() or self._apart() or quota or self._no_room()

    def _no_node(self) -> Verdict | None:
        """Return the verdict where some member cannot stand on any node, however free."""
        everywhere = np.ones(self.table.capacity, dtype=bool)
        for group, quota in enumerate(self.problem.needs):
            items = [i for i, item in enumerate(self.problem.items) if item.group == group]
            views = [
                filter_results(self.table, self.problem.items[i].shape, everywhere) for i in items
            ]
            if not quota.need or not views:
                continue
            item, view = self.problem.items[items[0]], views[0]
            if all(v.eligible == 0 for v in views):
                helps = self.remedies.describe(view, None)
                return Verdict(
                    "NoNodeMatches",
                    f"{self._asks(group)}; none of the {wording.count(view.nodes, 'node')} may "
                    f"hold it: {view.describe()}{helps and '; '}{helps}",
                )
            if all(v.eligible == v.too_small for v in views):
                asked = _asked(item.shape)
                if self.remedies.fits_unaligned_when_empty(item):
                    return Verdict(
                        "NotAlignable",
                        f"{self._one(items[0])} asks for {asked}; no node can give it its devices "
                        f"like that, even empty{_also(view)}",
                        "alignment preferred instead of required"
                        if self.remedies.starts_unaligned()
                        else "",
                    )
                return Verdict(
                    "TooLargeForNodes",
                    f"{self._one(items[0])} asks for {asked}; no node is that large, even empty: "
                    f"the {view.eligible} that may hold it have at most "
                    f"{wording.request(view.largest)}{_also(view)}",
                )
        return None

    def _apart(self) -> Verdict | None:
        """Return the verdict where members that have nodes violate the required tier already."""
        required, standing = self.problem.bounds.required, self.problem.bounds.standing
        if required is None or not standing:
            return None
        tier = self.table.tiers.indices[required]
        stood = np.unique(tier.ids[list(standing)])
        if len(stood) == 1 and stood[0] >= 0:
            return None
        names = [tier.title(int(d)) if d >= 0 else "none" for d in stood]
        return Verdict(
            "MembersApart",
            f"must stand under one {tier.name}, and its members with nodes stand under "
            f"{wording.listing(names)}",
        )

    def _best(self) -> tuple[Domain, Packing] | None:
        """Return the domain of the widest allowed tier that is least short, and its packing."""
        packed = [(domain, self.search.fullest(domain)) for domain in self._candidates()]
        if not packed:
            return None
        return min(
            packed,
            key=lambda found: sum(found[1].short(self.problem.items, self.problem.needs)),
        )

    def _candidates(self) -> list[Domain]:
        if self.level == EVERYWHERE:
            return [self.search.everywhere()]
        tier = self.table.tiers.indices[self.level]
        room, _ = self.search.room(self.level, self.problem.needs)
        available = np.array([[item.available] for item in self.problem.items])
        held = np.minimum(room, available).sum(axis=0)
        numbers = np.lexsort((first_nodes(self.search.table, self.level), -held))
        present = np.bincount(tier.ids[tier.ids >= 0], minlength=len(tier)) > 0
        standing = self.problem.bounds.standing
        if standing:
            present &= np.arange(len(tier)) == tier.ids[standing[0]]
        several = len(self.problem.items) > 1
        chosen = [n for n in numbers if present[n]][: DOMAINS_PACKED if several else 1]
        return [self.search.domain(self.level, int(n)) for n in chosen]

    def _short_items(self, packing: Packing) -> list[int]:
        """Return by item how many of the members it needs have no place in a packing."""
        left = packing.short(self.problem.items, self.problem.needs)
        short = []
        for item, placed in zip(self.problem.items, packing.placed, strict=True):
            share = min(left[item.group], item.available - int(placed))
            left[item.group] -= share
            short.append(share)
        return short

    def _no_room(self) -> Verdict:
        best = self._best()
        if best is None:
            tier = self.table.tiers.indices[self.level]
            return Verdict(
                "NoDomain", f"must stand under one {tier.name}, and no node has {tier.label}"
            )
        domain, packing = best
        short = self._short_items(packing)
        if not sum(short):
            return Verdict(FITS, "fits now and is placed in the next round")
        inside = np.zeros(self.table.capacity, dtype=bool)
        inside[domain.rows] = True
        where = self._where(domain)
        needed = self._needed()
        held = needed - sum(n * size for n, size in zip(short, self.problem.bundles, strict=True))
        parts = [
            f"{self._asks()}{self._under()}; {where} has room for {held} of {needed} now: "
            f"{self._lacks(short)} short"
        ]
        worst = self.problem.items[int(np.argmax(short))].shape
        view = filter_results(self.table, worst, inside)
        described = view.describe()
        if described:
            parts.append(f"there {described}")
        scarce = view.crowded[0].resource if view.crowded else ALIGNED
        if scarce not in (ALIGNED, ISOLATED) and not is_port(scarce):
            parts.append(holders(self.cluster, domain.rows, scarce, self.workload.key))
        parts.append(self.remedies.describe(view, domain))
        parts.append(self._kept())
        exact = "" if packing.exact else " (approximate: too many combinations to try all)"
        message = "; ".join(part for part in parts if part) + exact
        return Verdict("NotEnoughRoom", message, self.remedies.sentence(view, domain))

    def _kept(self) -> str:
        """Return what a reservation has to do with it: its own, or another workload's."""
        held = self.cluster.reservations.room
        if held is None:
            return ""
        at = timestamp.show(held.at)
        if held.workload == self.workload.key:
            return f"by the run times stated it starts at {at} at the latest; its place is kept"
        own = held.workload.namespace == self.workload.key.namespace
        whom = f"{held.workload.kind.lower()} {held.workload.name}" if own else "another namespace"
        return f"room is kept for {whom} until {at} from pods that may run longer"

    def _asks(self, group: int | None = None) -> str:
        """Return what must be placed, group by group: ``needs 32 pods x 8 GPUs``."""
        parts = []
        for number, quota in enumerate(self.problem.needs):
            items = [i for i, item in enumerate(self.problem.items) if item.group == number]
            if not quota.need or not items or group not in (None, number):
                continue
            sizes = list(dict.fromkeys(_asked(self.problem.items[i].shape) for i in items))
            each = wording.listing(sizes[:3], "or")
            more = "more " if self.workload.bound else ""
            tier = self.problem.group_bounds[number].required
            under = "" if tier is None else f" under one {self.table.tiers.indices[tier].name}"
            size = self.problem.bundles[items[0]]
            if size == 1:
                parts.append(f"{wording.count(quota.need, f'{more}pod')} x {each}{under}")
            else:
                groups = wording.count(quota.need, f"{more}tensor group")
                parts.append(f"{groups} of {size} pods ({each} a group){under}")
        return f"needs {wording.listing(parts)}"

    def _needed(self) -> int:
        """Return how many pods must be placed; a group may have more that are only wanted."""
        sizes = {i.group: n for i, n in zip(self.problem.items, self.problem.bundles, strict=True)}
        return sum(q.need * sizes.get(g, 1) for g, q in enumerate(self.problem.needs))

    def _one(self, item: int) -> str:
        size = self.problem.bundles[item]
        return "a pod" if size == 1 else f"a tensor group of {size} pods"

    def _under(self) -> str:
        if self.level == EVERYWHERE:
            return ""
        return f" under one {self.table.tiers.indices[self.level].name}"

    def _where(self, domain: Domain) -> str:
        if domain.level == EVERYWHERE:
            return "the cluster"
        title = self.table.tiers.indices[domain.level].title(domain.number)
        if self.problem.bounds.standing:
            return f"{title}, where its other members stand,"
        return f"the best, {title},"

    def _lacks(self, short: list[int]) -> str:
        total: dict[str, int] = {}
        for item, number in zip(self.problem.items, short, strict=True):
            for name, value in item.shape.asks.items() if number else ():
                total[name] = total.get(name, 0) + value * number
        pods = sum(n * size for n, size in zip(short, self.problem.bundles, strict=True))
        return f"{wording.count(pods, 'pod')} ({wording.request(total)})"


def _one_extra(problem: Problem) -> Problem:
    first = next((g for g, quota in enumerate(problem.needs) if quota.want), None)
    needs = [replace(quota, need=int(g == first)) for g, quota in enumerate(problem.needs)]
    return replace(problem, needs=needs)


def _asked(shape: PodShape) -> str:
    """Return what one pod asks for, with how close together its devices must be."""
    must = sorted(shape.alignment.required)
    close = f" aligned by {wording.listing(must)}" if must else ""
    return wording.request(shape.asks) + close


def _also(view: FilterResults) -> str:
    barred = replace(view, crowded=(), too_small=0).describe()
    return f"; {barred}" if barred else ""
