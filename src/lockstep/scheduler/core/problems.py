"""What all units ask for, kept because most of what waits is looked at often before its turn."""

from __future__ import annotations

from lockstep.scheduler.core.blocked import blocked
from lockstep.scheduler.core.cluster import Cluster
from lockstep.scheduler.core.musters import Muster
from lockstep.scheduler.core.problem import Problem, problem_of
from lockstep.scheduler.core.topology import Tiers
from lockstep.scheduler.core.units import Member, Unit, UnitKey


class Problems:
    """The problems of units, each for as long as nothing that it follows from has changed."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._known: dict[UnitKey, tuple[list[Muster[Member]], Tiers, Problem]] = {}

    def of(self, unit: Unit) -> Problem | None:
        """Return what a unit asks for; None where it is blocked by itself."""
        known = self._known.get(unit.key)
        musters, tiers = unit.musters, self._cluster.table.tiers
        if known is not None and known[0] is musters and known[1] is tiers:
            return known[2]
        if blocked(self._cluster, unit) is not None:
            return None
        problem = problem_of(self._cluster, unit)
        if not unit.bound:  # else it also follows from where the members' nodes stand
            self._known[unit.key] = (musters, tiers, problem)
        return problem

    def forget(self, key: UnitKey) -> None:
        """Keep nothing of a unit that does not wait any more."""
        self._known.pop(key, None)
