"""Quota for the first workload of each queue that limits keep waiting; others pass if they do not
delay it.

It gets a time as one does that waits for room (``backfill``): when, by the run times stated, enough
is given back of all limits around it, and there is room. What it takes beyond what is given back by
then is kept of the limits until it starts; room is not. Where its time comes and room is lacking it
gets another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from math import inf

from lockstep.scheduler.core.model.reservation import Reservation
from lockstep.scheduler.core.model.workload import Workload, WorkloadKey
from lockstep.scheduler.core.packing.packing import Quota
from lockstep.scheduler.core.placement.problem import Problem
from lockstep.scheduler.core.quota.account import Amounts, OverQuota
from lockstep.scheduler.core.quota.dominant_share import dominant_share
from lockstep.scheduler.core.reservations.bypass import Bypass, ends_by_then
from lockstep.scheduler.core.reservations.earliest_start import earliest_start_by_quota
from lockstep.scheduler.core.reservations.quota_releases import QuotaReleases
from lockstep.scheduler.core.reservations.quota_timeline import QuotaTimeline
from lockstep.scheduler.core.reservations.reserved_nodes import GRACE, reserved, until_of
from lockstep.scheduler.core.reservations.reserved_quota import (
    kept_off,
    left_to,
    note,
    promises,
    settle,
    shift,
)
from lockstep.scheduler.core.reservations.validity import quota_comes_about, still_asked
from lockstep.scheduler.core.state.cluster import Cluster

FOLLOWING = 8
"""Promises that may count in one limit at a time; the next first workloads get theirs after
these."""
RETRY_SECONDS = 1.0
SEARCHES = 4
"""Workloads to which no time could be told that are looked at in so long."""
HOPELESS_SECONDS = 10.0
"""Time after which such a workload is looked at again."""


class QuotaBackfill:
    """What quota is promised to the first of each queue, and who may ignore it."""

    def __init__(
        self, cluster: Cluster, problem_of: Callable[[Workload], Problem | None], passing: Bypass
    ) -> None:
        """*problem_of* says what a workload asks for; None where it is blocked by itself."""
        self._cluster = cluster
        self._problem_of = problem_of
        self._passing = passing
        self._back = QuotaReleases(cluster)
        self._begun = False
        """Whether anything has ever been promised: until then nobody asks what is given back."""
        self._hopeless: dict[WorkloadKey, float] = {}
        """Workloads to which no time could be told, and when that was."""
        self._put_off: dict[WorkloadKey, int] = {}
        """Workloads that have not been looked at because too many others had been, in vain, and
        what was free then; nothing else may happen that would have them tried again."""
        self._retry_at = inf
        self._moment: tuple[int, ...] = ()
        self._heeded: list[Reservation] = []
        """The promises that whoever was last tried had to leave alone."""
        self._asked_last: tuple[object, ...] = ()
        """Who that was, and when."""
        self._settled = 0
        """Moves whenever what is kept may have changed."""
        self._around: dict[str, list[Reservation]] = {}
        """By queue, the promises that count in a limit around it."""
        self._left: dict[tuple[str, ...], dict[str, Amounts]] = {}
        """What is kept by whom that is left to: a queue, and the queues to whose first it is."""

    @property
    def wake_at(self) -> float | None:
        """Return when to look again whether promises are kept, even if nothing happens."""
        firsts = self._cluster.ledger.quota_reservations
        due = [self._retry_at] if self._put_off else []
        if firsts:
            end = self._back.next
            due += [held.at + 2 * GRACE for held in firsts.values()]
            due += [end + 2 * GRACE] if end is not None else []
        return min(due, default=None)

    def refresh(self, now: float) -> None:
        """Keep what must be kept now; give up what has come to nothing."""
        cluster = self._cluster
        if not self._begun:
            cluster.ledger.moved.clear()
            return
        self._follow(now)
        moment = cluster.table.version, cluster.ledger.version
        anew, self._moment = moment != self._moment, moment
        for held in sorted(cluster.ledger.quota_reservations.values(), key=lambda one: one.at):
            known = not anew and held.workload not in cluster.touched
            if self._stands(held) and not self._look_again(held, now, known=known):
                self.drop_later(held)

    def due(self, now: float) -> list[WorkloadKey]:
        """Return who had been put off and may be looked at by now, unless all are tried anyhow."""
        if not self._put_off or now < self._retry_at:
            return []
        freed = self._cluster.freed
        found, self._put_off = [key for key, was in self._put_off.items() if was == freed], {}
        return found

    def _follow(self, now: float) -> None:
        """Take in what has changed of what is given back in time."""
        self._begun = True
        moved = self._back.update(now, self._cluster.touched)
        if moved == []:
            return
        for held in promises(self._cluster):
            if moved is None:
                note(self._cluster, held, self._back)
            for one in moved or ():
                shift(held, one)
        self.settle()

    def settle(self) -> None:
        """Bring what is kept up to date with what is promised."""
        self._around, self._left = {}, {}
        self._settled += 1
        settle(self._cluster)

    def note(self, held: Reservation, now: float) -> None:
        """Keep quota for a promise from now on."""
        if self._cluster.ledger.specs:
            self._follow(now)
            note(self._cluster, held, self._back)
            self.settle()

    def later(self, workload: Workload, now: float) -> QuotaTimeline | None:
        """Return what limits there are for a workload later on; None where there are no queues."""
        if not self._cluster.ledger.specs:
            return None
        self._follow(now)
        return QuotaTimeline(self._cluster, self._back, workload, now)

    def _look_again(self, held: Reservation, now: float, *, known: bool) -> bool:
        """Go on keeping quota; drop it where that is in vain, and return whether it stays.

        *known*: the workload waits for the same as when it was last looked at.
        """
        workload = self._waiting(held)
        if workload is not None:
            if now > held.at + GRACE:
                return self._renew(held, workload, now)
            if (known or self._as_before(held, workload)) and quota_comes_about(
                self._cluster, held
            ):
                return True
        self._drop(held)
        return False

    def _waiting(self, held: Reservation) -> Workload | None:
        """Return the workload to which something is promised, as long as it needs that."""
        workload, place = self._cluster.workloads.get(held.workload), self._cluster.reservation
        if workload is None or not workload.open or workload.key in self._cluster.nominations:
            return None
        return None if place is not None and place.workload == workload.key else workload

    def _as_before(self, held: Reservation, workload: Workload) -> bool:
        """Return whether a workload still waits for what it was promised."""
        same = until_of(workload, held.at) == held.until and self._asked(workload) is not None
        return same and still_asked(self._cluster, held, workload)

    def _asked(self, workload: Workload) -> Problem | None:
        try:
            return self._problem_of(workload)
        except Exception:  # it will be met again, and told of, when the workload is decided about
            return None

    def _renew(self, held: Reservation, workload: Workload, now: float) -> bool:
        """Tell another time to who could not start in time for want of room, if there is one."""
        self._drop(held)
        self.drop_later(held)
        problem = self._asked(workload)
        return problem is not None and self._promise(workload, problem, now)

    def _drop(self, held: Reservation) -> None:
        self._forget(held)
        self._cluster.freed += 1

    def _forget(self, held: Reservation) -> None:
        del self._cluster.ledger.quota_reservations[held.queue]
        self._cluster.touched.add(held.workload)  # what is shown of it is not so
        self.settle()

    def _stands(self, held: Reservation) -> bool:
        return self._cluster.ledger.quota_reservations.get(held.queue) is held

    def drop_later(self, held: Reservation) -> None:
        """Drop what was promised for later on the ground of a promise that has come to nothing: it
        would be made at the cost of who was to start before it.
        """
        for one in self._concerned(held.queue):
            if self._stands(one) and one.at >= held.at:
                self._drop(one)

    def release(self, key: WorkloadKey) -> None:
        """Keep nothing any more for a workload that does not wait for quota any longer."""
        for held in list(self._cluster.ledger.quota_reservations.values()):
            if held.workload == key:
                self._drop(held)

    @contextmanager
    def lifted(self, workload: Workload, now: float) -> Iterator[None]:
        """Let a workload use what is kept for those that it need not heed."""
        there = self._concerned(workload.queue)
        self._heeded = self._heeds(workload, there, now) if there else []
        if len(self._heeded) == len(there):
            yield
            return
        whose = workload.queue, *(f"{one.queue}/{bool(one.wanted)}" for one in self._heeded)
        left = self._left.get(whose)
        if left is None:
            left = self._left[whose] = left_to(self._cluster, workload.queue, self._heeded)
        with kept_off(self._cluster, left):
            yield

    def _heeds(self, workload: Workload, there: list[Reservation], now: float) -> list[Reservation]:
        """Return what a workload must leave alone: of those that are promised something
        themselves only what is promised for before.
        """
        asked = workload.key, now, self._settled
        if asked != self._asked_last:
            own = next((one.at for one in there if one.workload == workload.key), inf)
            before = [one for one in there if one.at < own]
            self._heeded = self._passing.heeded(workload, before, now)
            self._asked_last = asked
        return self._heeded

    def _concerned(self, queue: str) -> list[Reservation]:
        """Return the promises for whose sake something may be kept of the limits around a queue."""
        found = self._around.get(queue)
        if found is None:
            around = {one.name for one in self._cluster.ledger.account(queue).chain}
            there = promises(self._cluster)
            found = [held for held in there if not around.isdisjoint(held.given)]
            self._around[queue] = found
        return found

    def placed(self, workload: Workload, now: float) -> bool:
        """Take note of a placement; return whether it has brought a promise to naught."""
        there, broken = self._concerned(workload.queue), False
        if not there:
            return False
        heeded = self._heeded
        self._follow(now)
        for held in [one for one in there if one.workload == workload.key and self._stands(one)]:
            self._forget(held)  # what was kept for it is what it uses: nobody gets more by that
        ignored = [one for one in there if all(one is not other for other in heeded)]
        for held in (one for one in ignored if not ends_by_then(workload, one, now)):
            if held is self._cluster.reservation and held.workload != workload.key:
                self._cluster.freed += 1  # it is looked at before the next round
            elif self._stands(held):
                broken |= not self._look_again(held, now, known=True)
        return broken

    def promise(self, workload: Workload, problem: Problem, over: OverQuota, now: float) -> None:
        """Tell the time of a workload that its limits have just kept waiting, if it is the
        first.
        """
        if over.field == "lending" or not self.wanted(workload, now):
            return
        if self._cluster.ledger.keeps and over.account.queue != workload.queue:
            return  # what counts there depends on what its parts use: nothing can be kept of it
        if not self._promise(workload, problem, now):
            self._hopeless[workload.key] = now

    def _in_turn(self, queue: str) -> bool:
        """Return whether a queue is not ahead of those that share a limit with it, once the firsts
        of those have started to which something is promised.

        Else promises would be made by turns, whatever the weights are.
        """
        cluster, own = self._cluster, self._cluster.ledger.account(queue)
        capacity = cluster.capacity()
        for held in self._concerned(queue):
            parts = own.apart(cluster.ledger.account(held.queue))
            if parts is not None:
                theirs = dominant_share(parts[1], capacity, held.asked)
                if dominant_share(parts[0], capacity) > theirs:
                    return False
        return True

    def wanted(self, workload: Workload, now: float) -> bool:
        """Return whether it is worth a look by when a workload would be within its limits."""
        if workload.queue in self._cluster.ledger.quota_reservations:
            return False
        few = len(self._concerned(workload.queue)) < FOLLOWING and self._in_turn(workload.queue)
        return few and self._worth_a_look(workload.key, now)

    def _worth_a_look(self, key: WorkloadKey, now: float) -> bool:
        """Return whether it is time to look when a workload starts; else it may be put off for a
        moment.
        """
        hopeless = self._hopeless
        while hopeless and next(iter(hopeless.values())) <= now - HOPELESS_SECONDS:
            del hopeless[next(iter(hopeless))]
        if key in hopeless:
            return False
        lately = next(islice(reversed(hopeless.values()), SEARCHES - 1, None), -inf)
        if lately > now - RETRY_SECONDS:
            self._put_off[key] = self._cluster.freed
            self._retry_at = lately + RETRY_SECONDS
        return lately <= now - RETRY_SECONDS

    def _promise(self, workload: Workload, problem: Problem, now: float) -> bool:
        least = replace(problem, needs=[Quota(one.need, one.need) for one in problem.needs])
        later = self.later(workload, now)
        found = (
            earliest_start_by_quota(self._cluster, workload, least, now, later) if later else None
        )
        if found is None:
            return False
        whole = reserved(self._cluster, workload, found.at, found.place)
        held = replace(whole, wanted={})
        self._cluster.ledger.quota_reservations[workload.queue] = held
        self.note(held, now)
        return True
