"""Who need not heed what is kept for a unit that waits."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lockstep.scheduler.core.cluster import Cluster
from lockstep.scheduler.core.preemption.claims import claims_from
from lockstep.scheduler.core.problem import Problem
from lockstep.scheduler.core.reservation import Reservation, turn_of
from lockstep.scheduler.core.units import Unit

LATER = 1e-3
"""Seconds by which one starts later at most that is decided about after others at one moment."""


class Passing:
    """Tells who goes before a unit to which something is promised, or is gone in time."""

    def __init__(self, cluster: Cluster, problem_of: Callable[[Unit], Problem | None]) -> None:
        """*problem_of* says what a unit asks for; None where it is blocked by itself."""
        self._cluster = cluster
        self._problem_of = problem_of

    def may(self, unit: Unit, held: Reservation, now: float) -> bool:
        """Return whether a unit need not heed a promise: it is its own, it goes before, it will
        have ended by then, or others have gone for its place by now.
        """
        return not self.heeded(unit, [held], now)

    def heeded(self, unit: Unit, there: Sequence[Reservation], now: float) -> list[Reservation]:
        """Return which of some promises a unit must leave alone."""
        if unit.key in self._cluster.nominations:
            return []
        left = [one for one in there if one.unit != unit.key and not ends_by_then(unit, one, now)]
        if not left:
            return []
        priority = self._cluster.priorities.of(unit)
        return [held for held in left if not self._before(unit, priority, held)]

    def _before(self, unit: Unit, priority: int, held: Reservation) -> bool:
        """Return whether a unit's turn comes before that of the one waited for, whatever is kept.

        Of its own queue that may also be an older one, which has lost its place and waits again. Of
        another queue it may be one that claims what is guaranteed there from who would borrow it.
        """
        if unit.queue != held.queue:
            return priority > held.priority or self._claims(unit, held)
        if priority != held.priority:
            return priority > held.priority
        return turn_of(unit) < held.turn

    def _claims(self, unit: Unit, held: Reservation) -> bool:
        """Return whether a unit claims where the one waited for would borrow."""
        waits = self._cluster.units.get(held.unit)
        return self._claims_from(unit, held.queue) and (
            waits is None or not self._claims_from(waits, unit.queue)
        )

    def _claims_from(self, unit: Unit, queue: str) -> bool:
        around = self._cluster.ledger.account(unit.queue).chain
        if not any(account.guaranteed for account in around):
            return False
        problem = self._problem_of(unit)
        return problem is not None and claims_from(self._cluster, unit, problem, queue)


def ends_by_then(unit: Unit, held: Reservation, now: float) -> bool:
    """Return whether a unit will have ended by the time that was told, if it starts now."""
    runtime = unit.runtime
    return runtime is not None and (unit.since or now) + runtime + LATER <= held.at
