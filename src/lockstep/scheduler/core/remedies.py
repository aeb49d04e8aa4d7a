"""What would let a waiting unit start, tried out before it is said."""

from __future__ import annotations

from dataclasses import replace

from lockstep.scheduler.core import words
from lockstep.scheduler.core.cluster import Cluster
from lockstep.scheduler.core.fit import lifted
from lockstep.scheduler.core.obstacles import Obstacles
from lockstep.scheduler.core.placement import EVERYWHERE, Domain, Search
from lockstep.scheduler.core.problem import Bounds, Problem
from lockstep.scheduler.core.units import UnitKey


class Remedies:
    """Changes tried on one problem that has no place now."""

    def __init__(self, cluster: Cluster, unit: UnitKey, problem: Problem) -> None:
        self._cluster = cluster
        self._unit = unit
        self._problem = problem

    def describe(self, view: Obstacles, domain: Domain | None) -> str:
        """Return in words what would help, and what would not; *domain* is the best one."""
        parts = [self._lifting(view)]
        if domain is not None and not self.holds_when_empty(domain):
            there = "the cluster" if domain.level == EVERYWHERE else "it"
            parts.append(f"even with nobody else there {there} would not hold it")
        if domain is not None and self.starts_without_tier():
            parts.append("without the required tier it would start now")
        return "; ".join(part for part in parts if part)

    def _lifting(self, view: Obstacles) -> str:
        """Return which single requirement keeps the most room away, and whether that is all."""
        found = [one for one in view.barred if one.would_hold]
        if not found:
            return ""
        most = max(found, key=lambda one: one.would_hold)
        room = words.count(most.would_hold, "such pod")
        enough = ", which would be enough" if self.starts_without(most.words) else ""
        return f"the nodes {most.words} have room for {room}{enough}"

    def starts_without(self, requirement: str) -> bool:
        """Return whether the unit would start were one requirement on nodes not there."""
        table = self._cluster.table
        fits = [lifted(table, item.shape, requirement) for item in self._problem.items]
        return self._places(Search(self._cluster, self._problem, fits))

    def starts_without_tier(self) -> bool:
        """Return whether the unit would start if its members need not share a domain."""
        bounds = self._problem.bounds
        if bounds.required is None or bounds.standing:
            return False
        free = replace(self._problem, bounds=Bounds(None, None, ()))
        return self._places(Search(self._cluster, free))

    def holds_when_empty(self, domain: Domain) -> bool:
        """Return whether a domain would hold the unit if nobody else were there."""
        table, problem = self._cluster.table, self._problem
        search = Search(self._cluster, problem)
        ground = search.ground(domain)
        ground.free = table.free[:, domain.rows] + table.used[:, domain.rows]
        packing = search.pack_ground(domain, ground, problem.needs)
        return packing.satisfies(problem.items, problem.needs)

    def _places(self, search: Search) -> bool:
        return search.place(self._unit) is not None
