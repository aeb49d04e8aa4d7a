"""Who need not heed what is kept for a workload that waits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from math import inf

import numpy as np

from lockstep.scheduler.core.model.reservation import Reservation, turn_of
from lockstep.scheduler.core.model.workload import Workload
from lockstep.scheduler.core.placement.problem import Problem
from lockstep.scheduler.core.preemption.reclaim_claims import claims_from
from lockstep.scheduler.core.reservations.quota_holds import QuotaHolds
from lockstep.scheduler.core.reservations.reserved_nodes import hold
from lockstep.scheduler.core.reservations.reserved_quota import kept_off
from lockstep.scheduler.core.state.cluster import Cluster
from lockstep.scheduler.core.util.array_types import BoolArray

LATER = 1e-3
"""Seconds by which one starts later at most that is decided about after others at one moment."""


@dataclass(frozen=True, slots=True)
class Heeded:
    """What a workload that is tried leaves to reservations."""

    exempt: bool = True
    """Whether it may use the room that is reserved."""
    quota: Sequence[Reservation] = ()
    """The reservations whose quota it must leave alone."""


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
        self._last: tuple[tuple[object, ...], list[Reservation]] = (), []
        """The workload, time and version last asked for, and whose quota it had to leave alone."""

    def exempt(self, workload: Workload, now: float) -> bool:
        """Return whether a workload need not heed the reservation of room."""
        held = self._cluster.reservations.room
        return held is None or not self._heeded(workload, [held], now)

    def open_to(self, heeded: Heeded) -> BoolArray | None:
        """Return the rows on which others may go for a workload's sake; None where that is all.

        What ends on the reserved place is kept for whom it is reserved: a workload that heeds the
        reservation could not stand there, and its victims would have gone for nothing.
        """
        held, table = self._cluster.reservations.room, self._cluster.table
        if held is None or heeded.exempt:
            return None
        rows: BoolArray = np.ones(table.capacity, dtype=bool)
        rows[[table.rows[node] for node in held.wanted]] = False
        return rows

    @contextmanager
    def lifted(self, workload: Workload, now: float) -> Iterator[Heeded]:
        """Let a workload use what is held for reservations that it need not heed."""
        book = self._cluster.reservations
        if not book:
            yield Heeded()
            return
        exempt, there = self.exempt(workload, now), self._quota.around(workload.queue)
        heeded = self._heeded_quota(workload, there, now) if there else []
        held = book.room if exempt else None
        fewer = len(heeded) < len(there)
        left = self._quota.left(workload.queue, heeded) if fewer else None
        with nullcontext() if left is None else kept_off(self._cluster, left):
            if held is not None:
                hold(self._cluster, held, -1)
            try:
                yield Heeded(exempt, heeded)
            finally:
                if held is not None and book.room is held:
                    hold(self._cluster, held, 1)

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
