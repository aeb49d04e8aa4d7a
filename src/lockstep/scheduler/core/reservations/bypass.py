"""Who need not heed what is kept for a workload that waits."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lockstep.scheduler.core.model.reservation import Reservation, turn_of
from lockstep.scheduler.core.model.workload import Workload
from lockstep.scheduler.core.placement.problem import Problem
from lockstep.scheduler.core.preemption.reclaim_claims import claims_from
from lockstep.scheduler.core.state.cluster import Cluster

LATER = 1e-3
"""Seconds by which one starts later at most that is decided about after others at one moment."""


class Bypass:
    """Tells who goes before a workload to which something is promised, or is gone in time."""

    def __init__(self, cluster: Cluster, problem_of: Callable[[Workload], Problem | None]) -> None:
        """*problem_of* says what a workload asks for; None where it is blocked by itself."""
        self._cluster = cluster
        self._problem_of = problem_of

    def may(self, workload: Workload, held: Reservation, now: float) -> bool:
        """Return whether a workload need not heed a promise: it is its own, it goes before, it will
        have ended by then, or others have gone for its place by now.
        """
        return not self.heeded(workload, [held], now)

    def heeded(
        self, workload: Workload, there: Sequence[Reservation], now: float
    ) -> list[Reservation]:
        """Return which of some promises a workload must leave alone."""
        if workload.key in self._cluster.nominations:
            return []
        left = [
            one
            for one in there
            if one.workload != workload.key and not ends_by_then(workload, one, now)
        ]
        if not left:
            return []
        priority = self._cluster.priorities.of(workload)
        return [held for held in left if not self._before(workload, priority, held)]

    def _before(self, workload: Workload, priority: int, held: Reservation) -> bool:
        """Return whether a workload's turn comes before that of the one waited for, whatever is
        kept.

        Of its own queue that may also be an older one, which has lost its place and waits again. Of
        another queue it may be one that claims what is guaranteed there from who would borrow it.
        """
        if workload.queue != held.queue:
            return priority > held.priority or self._claims(workload, held)
        if priority != held.priority:
            return priority > held.priority
        return turn_of(workload) < held.turn

    def _claims(self, workload: Workload, held: Reservation) -> bool:
        """Return whether a workload claims where the one waited for would borrow."""
        waits = self._cluster.workloads.get(held.workload)
        return self._claims_from(workload, held.queue) and (
            waits is None or not self._claims_from(waits, workload.queue)
        )

    def _claims_from(self, workload: Workload, queue: str) -> bool:
        around = self._cluster.ledger.account(workload.queue).chain
        if not any(account.guaranteed for account in around):
            return False
        problem = self._problem_of(workload)
        return problem is not None and claims_from(self._cluster, workload, problem, queue)


def ends_by_then(workload: Workload, held: Reservation, now: float) -> bool:
    """Return whether a workload will have ended by the time that was told, if it starts now."""
    runtime = workload.runtime
    return runtime is not None and (workload.since or now) + runtime + LATER <= held.at
