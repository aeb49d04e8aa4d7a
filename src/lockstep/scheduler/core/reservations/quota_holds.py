"""The quota that reservations hold, brought up to date with what is given back in time."""

from __future__ import annotations

from collections.abc import Sequence

from lockstep.scheduler.core.model.reservation import Reservation
from lockstep.scheduler.core.model.workload import Workload
from lockstep.scheduler.core.quota.account import Amounts
from lockstep.scheduler.core.quota.dominant_share import dominant_share
from lockstep.scheduler.core.reservations.quota_releases import LimitChange, QuotaReleases
from lockstep.scheduler.core.reservations.quota_timeline import QuotaTimeline
from lockstep.scheduler.core.reservations.reserved_quota import kept_in, left_to, needed
from lockstep.scheduler.core.state.cluster import Cluster


class QuotaHolds:
    """What is kept of all limits for the reservations in the book."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._releases = QuotaReleases(cluster)
        self.begun = False
        """Whether there has ever been a reservation: until then nothing that is given back
        counts."""
        self.version = 0
        """Moves whenever what is kept may have changed."""
        self._around: dict[str, list[Reservation]] = {}
        """By queue, the reservations that count in a limit around it."""
        self._left: dict[tuple[str, ...], dict[str, Amounts]] = {}
        """What is kept from a queue's workload that heeds some reservations: by queue and those."""

    @property
    def next_end(self) -> float | None:
        """Return the next of the ends that are counted on."""
        return self._releases.next

    def follow(self, now: float) -> None:
        """Take in what has changed of what is given back in time."""
        self.begun = True
        moved = self._releases.update(now, self._cluster.touched)
        if moved == []:
            return
        for held in self._cluster.reservations:
            if moved is None:
                self._note(held)
            for one in moved or ():
                _shift(held, one)
        self.settle()

    def note(self, held: Reservation, now: float) -> None:
        """Keep quota for a reservation from now on."""
        if self._cluster.ledger.specs:
            self.follow(now)
            self._note(held)
            self.settle()

    def _note(self, held: Reservation) -> None:
        """Note by account, whose ceilings count for a reservation, what is given back in time."""
        accounts = kept_in(self._cluster, held.queue, held.asked)
        by = self._releases.by
        held.given = {one.name: by(one, held.at, names) for one, names in accounts.items()}

    def settle(self) -> None:
        """Keep of limits from all workloads what must be left to reservations for ever."""
        self._around, self._left = {}, {}
        self.version += 1
        if self._cluster.ledger.specs:
            self._cluster.ledger.reserved = needed(self._cluster, list(self._cluster.reservations))

    def later(self, workload: Workload, now: float) -> QuotaTimeline | None:
        """Return what limits there are for a workload later on; None where there are no queues."""
        if not self._cluster.ledger.specs:
            return None
        self.follow(now)
        return QuotaTimeline(self._cluster, self._releases, workload, now)

    def around(self, queue: str) -> list[Reservation]:
        """Return the reservations for which something may be kept of the limits around a queue."""
        found = self._around.get(queue)
        if found is None:
            around = {one.name for one in self._cluster.ledger.account(queue).chain}
            there = self._cluster.reservations
            found = [held for held in there if not around.isdisjoint(held.given)]
            self._around[queue] = found
        return found

    def left(self, queue: str, heeded: Sequence[Reservation]) -> dict[str, Amounts]:
        """Return what is kept by account from a queue's workload that heeds some reservations."""
        whose = queue, *(f"{one.queue}/{bool(one.wanted)}" for one in heeded)
        found = self._left.get(whose)
        if found is None:
            found = self._left[whose] = left_to(self._cluster, queue, heeded)
        return found

    def in_turn(self, queue: str) -> bool:
        """Return whether a queue is not ahead of those that share a limit with it, once the
        workloads of those have started that have reservations.

        Else queues would get reservations by turns, and weights would not count.
        """
        cluster, own = self._cluster, self._cluster.ledger.account(queue)
        capacity = cluster.capacity()
        for held in self.around(queue):
            parts = own.apart(cluster.ledger.account(held.queue))
            if parts is not None:
                theirs = dominant_share(parts[1], capacity, held.asked)
                if dominant_share(parts[0], capacity) > theirs:
                    return False
        return True


def _shift(held: Reservation, moved: LimitChange) -> None:
    """Bring up to date what is given back in time for a reservation."""
    for account in moved.account.chain:
        given = held.given.get(account.name)
        if given is None:
            continue
        for backs, sign in ((moved.before, -1), (moved.after, 1)):
            for end, amounts in backs:
                if end <= held.at:
                    for name in given:
                        given[name] += sign * amounts.get(name, 0)
