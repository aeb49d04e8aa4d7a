"""Which workloads need not heed what is held for a reservation, and the world as they see it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import inf

import numpy as np

from lockstep.scheduler.core.model.reservation import Reservation, turn_of
from lockstep.scheduler.core.model.workload import Workload
from lockstep.scheduler.core.placement import admission
from lockstep.scheduler.core.placement.problem import Problem
from lockstep.scheduler.core.preemption.reclaim_claims import claims_from
from lockstep.scheduler.core.quota.dominant_share import fair_turn, largest_part
from lockstep.scheduler.core.quota.ledger import Ledger
from lockstep.scheduler.core.quota.supposed import Supposed
from lockstep.scheduler.core.reservations.quota_holds import QuotaHolds
from lockstep.scheduler.core.reservations.reserved_nodes import hold
from lockstep.scheduler.core.state.cluster import Cluster
from lockstep.scheduler.core.util.array_types import BoolArray

LATER = 1e-3
"""Seconds by which one starts later at most that is decided about after others at one moment."""


class Heeded(Supposed):
    """The world for one workload that is tried: what it need not heed is not held in it."""

    def __init__(
        self, ledger: Ledger, *, exempt: bool = True, quota: Sequence[Reservation] = ()
    ) -> None:
        """*exempt*: it may use the room that is reserved; *quota*: the reservations whose quota it
        must leave alone.
        """
        super().__init__(ledger)
        self.exempt = exempt
        self.quota = quota


class Bypass:
    """Tells which workloads go before one with a reservation, or are gone in time."""

    def __init__(
        self,
        cluster: Cluster,
        quota: QuotaHolds,
        problem_of: Callable[[Workload], Problem | None],
    ) -> None:
        """*problem_of* says what a workload asks for; None where it is blocked by itself."""
        self._cluster = cluster
        self._quota = quota
        self._problem_of = problem_of
        self._nothing = Heeded(cluster.ledger)
        """The world while there is no reservation."""
        self._last: tuple[tuple[object, ...], list[Reservation]] = (), []
        """The workload, time and version last asked for, and whose quota it had to leave alone."""

    def exempt(self, workload: Workload, now: float) -> bool:
        """Return whether a workload need not heed the reservation of room."""
        held = self._cluster.reservations.room
        return held is None or not self._heeded(workload, [held], now)

    def open_to(self, heeded: Heeded) -> BoolArray | None:
        """Return the rows on which others may go for a workload's sake; None where that is all.

        What ends on the reserved place is kept for its reservation: a workload that heeds the
        reservation could not stand there, and its victims would have gone for nothing.
        """
        held, table = self._cluster.reservations.room, self._cluster.table
        if held is None or heeded.exempt:
            return None
        rows: BoolArray = np.ones(table.capacity, dtype=bool)
        rows[[table.rows[node] for node in held.wanted]] = False
        return rows

    def lifted(self, workload: Workload, now: float) -> Heeded:
        """Let a workload use what is held for reservations that it need not heed."""
        cluster, book = self._cluster, self._cluster.reservations
        if not book:
            return self._nothing
        exempt, there = self.exempt(workload, now), self._quota.around(workload.queue)
        quota = self._heeded_quota(workload, there, now) if there else []
        world = Heeded(cluster.ledger, exempt=exempt, quota=quota)
        if len(quota) < len(there):
            world.reserve(self._quota.left(workload.queue, quota))
        if book.room is not None and exempt:
            world.apply(partial(hold, cluster, book.room), -1)
        return world

    def _heeded_quota(
        self, workload: Workload, there: list[Reservation], now: float
    ) -> list[Reservation]:
        """Return whose quota a workload must leave alone: with a reservation of its own only that
        of earlier ones.
        """
        asked = workload.key, now, self._quota.version
        if asked != self._last[0]:
            own = next((one.at for one in there if one.workload == workload.key), inf)
            before = [one for one in there if one.at < own]
            self._last = asked, self._heeded(workload, before, now)
        return self._last[1]

    def _heeded(
        self, workload: Workload, there: Sequence[Reservation], now: float
    ) -> list[Reservation]:
        """Return which reservations a workload must leave alone: not its own, none that it goes
        before or has ended by, and none where others have gone for its place by now.
        """
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
        """Return whether a workload's turn comes before that of the one waited for.

        Of its own queue that may also be an older one, which has lost its place and waits again. Of
        another queue it may be one that claims what is guaranteed there from a borrower.
        """
        if workload.queue != held.queue:
            if priority > held.priority or self._claims(workload, held):
                return True
            return priority == held.priority and self._behind(workload, held)
        if priority != held.priority:
            return priority > held.priority
        return turn_of(workload) < held.turn

    def _behind(self, workload: Workload, held: Reservation) -> bool:
        """Return whether a workload's queue has less of its share than that of the one waited for,
        and the workload asks for no less: it then goes in its place.

        Else the share would be what it was when the reservation was made, and not what it is. What
        asks for less could go on taking what a large gang waits for.
        """
        ledger, capacity = self._cluster.ledger, self._cluster.capacity()
        own, their = ledger.account(workload.queue), ledger.account(held.queue)
        mine, theirs = own.apart(their) or (own.chain[-1], their.chain[-1])
        if not held.wanted or mine is theirs:
            return False
        if fair_turn(mine, capacity) >= fair_turn(theirs, capacity):
            return False
        problem = self._problem_of(workload)
        asked = admission.asked(self._cluster, problem) if problem is not None else {}
        return largest_part(asked, capacity) >= largest_part(held.asked, capacity)

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
