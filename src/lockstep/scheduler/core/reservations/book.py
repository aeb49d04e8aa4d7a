"""The book of reservations: a time for the first workload that does not fit, and what it needs.

There is one reservation of room and quota at most, and by queue one of quota alone, for the first
workload that limits keep waiting. The time is when, by the run times that are stated, enough of
what runs will have ended; a pod that states none, or is overdue, is never assumed to end. What will
not be freed by then is held free now. Others pass a reservation where they do not delay it; what
will itself have ended by then may use even what is held.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

import numpy as np

from lockstep.scheduler.core.model.decisions import Placement
from lockstep.scheduler.core.model.reservation import Reservation
from lockstep.scheduler.core.model.workload import Workload, WorkloadKey
from lockstep.scheduler.core.placement import admission
from lockstep.scheduler.core.placement.problem import Problem
from lockstep.scheduler.core.quota.account import OverQuota
from lockstep.scheduler.core.reservations.bypass import Bypass, Heeded, ends_by_then
from lockstep.scheduler.core.reservations.earliest_start import (
    earliest_start,
    earliest_start_by_quota,
)
from lockstep.scheduler.core.reservations.quota_holds import QuotaHolds
from lockstep.scheduler.core.reservations.reserved_nodes import (
    GRACE,
    Ending,
    hold,
    keep,
    reserved,
    until_of,
)
from lockstep.scheduler.core.reservations.search_limit import SearchLimit
from lockstep.scheduler.core.reservations.validity import (
    can_be_kept,
    quota_comes_about,
    recorded,
    still_asked,
)
from lockstep.scheduler.core.state.cluster import Cluster
from lockstep.scheduler.core.util.array_types import IntArray

FOLLOWING = 8
"""Reservations that may count in one limit at a time; the next first workloads get theirs after
these."""
SEARCHES = 4
"""Workloads that limits keep waiting for which a search may be in vain at one time."""


class ReservationBook:
    """Makes reservations, follows them up, and says which of them a workload must heed."""

    def __init__(self, cluster: Cluster, problem_of: Callable[[Workload], Problem | None]) -> None:
        """*problem_of* says what a workload asks for; None where it is blocked by itself."""
        self._cluster = cluster
        self._book = cluster.reservations
        self._problem_of = problem_of
        self._quota = QuotaHolds(cluster)
        self.bypass = Bypass(cluster, self._quota, problem_of)
        self._room_searches, self._quota_searches = SearchLimit(1), SearchLimit(SEARCHES)
        self._begun = False
        self._moments: dict[str, tuple[int, ...]] = {}
        """By what is held (room, quota) the state for which that was last found to be valid."""
        self._next_end: float | None = None
        """When the next of those ends that are to end on the reserved place."""
        self._used: tuple[IntArray, IntArray] = np.zeros(0, np.int64), np.zeros((0, 0), np.int64)
        """The rows of the reserved place, and what is used there."""
        self._withheld = False
        """Whether this round makes no more reservations: a workload further in front is still to
        be decided, or has just got what another one needs."""

    # What is in the book, from round to round.

    def refresh(self, now: float, *, released: bool) -> None:
        """Hold what must be held now; strike out a reservation that has come to nothing.

        *released*: nothing is held in the table any more, because its rows have changed.
        """
        if not self._begun:
            self._begun = True
            self._take_up(now)
        self._withheld = False
        self._refresh_quota(now)
        self._make_up_for(self._quota_searches, now)
        if self._book.room is not None:
            self._refresh_room(self._book.room, now, released=released)
        else:
            self._make_up_for(self._room_searches, now)

    def _take_up(self, now: float) -> None:
        """Hold what an earlier leader has reserved; nothing has been decided since."""
        for found in recorded(self._cluster):
            ending = self._in_time(found, now)
            if ending is not None:
                self._enter_room(found, ending)
                return

    def _refresh_quota(self, now: float) -> None:
        cluster = self._cluster
        if not self._quota.begun:
            cluster.ledger.moved.clear()
            return
        self._quota.follow(now)
        anew = self._moved("quota", cluster.table.version, cluster.ledger.version)
        for held in sorted(self._book.quota.values(), key=lambda one: one.at):
            known = not anew and held.workload not in cluster.touched
            if self._stands(held) and not self._recheck_quota(held, now, known=known):
                self._drop_later(held)

    def _refresh_room(self, held: Reservation, now: float, *, released: bool) -> None:
        if released:
            held.kept = {}
        cluster = self._cluster
        late = now > GRACE + (held.at if self._next_end is None else self._next_end)
        due = cluster.touched or late or self._taken()
        moment = cluster.freed, cluster.table.version, cluster.ledger.version
        if self._moved("room", *moment) or due:
            hold(cluster, held, -1)
            held.kept = {}
            ending = self._in_time(held, now)
            if ending is not None:
                self._hold_room(held, ending)
            else:
                self._drop(held)
                self._drop_later(held)

    def _moved(self, what: str, *moment: int) -> bool:
        before, self._moments[what] = self._moments.get(what), moment
        return before != moment

    def _taken(self) -> bool:
        """Return whether the nodes of the place are used as they were not when last looked at."""
        rows, before = self._used
        return not np.array_equal(self._cluster.table.used[:, rows], before)

    def _make_up_for(self, searches: SearchLimit, now: float) -> None:
        """Look for the time of workloads that were put off and have not been tried since."""
        for key in searches.due(now, self._cluster.freed) if searches.waiting else ():
            workload = self._waiting(key)
            problem = self._asked(workload) if workload is not None else None
            if workload is not None and problem is not None and any(q.need for q in problem.needs):
                self.reserve(workload, problem, now)
                self._cluster.touched.add(key)  # it has more to show

    @property
    def wake_at(self) -> float | None:
        """Return when to look again at what is in the book, even if nothing happens."""
        room, quota = self._book.room, self._book.quota
        due = [held.at + 2 * GRACE for held in quota.values()]
        if self._quota_searches.waiting:
            due.append(self._quota_searches.open_at)
        if quota and (end := self._quota.next_end) is not None:
            due.append(end + 2 * GRACE)
        if room is None:
            due += [self._room_searches.open_at] if self._room_searches.waiting else []
        else:
            next_end = room.at if self._next_end is None else self._next_end
            due.append(min(room.at, next_end) + 2 * GRACE)
        return min(due, default=None)

    # Whether a reservation is valid.

    def _waiting(self, key: WorkloadKey) -> Workload | None:
        """Return a workload that waits, and for which no others make way meanwhile."""
        workload = self._cluster.workloads.get(key)
        nominated = key in self._cluster.nominations
        return None if workload is None or not workload.open or nominated else workload

    def _asked(self, workload: Workload) -> Problem | None:
        """Return what a workload asks for; None where that cannot be told."""
        try:
            return self._problem_of(workload)
        except Exception:  # it will be met again, and told of, when the workload is decided about
            return None

    def _in_time(self, held: Reservation, now: float) -> Ending | None:
        """Return what ends on a place in time, while nothing is held for it; None where the
        workload cannot start as reserved any more.
        """
        workload = self._waiting(held.workload)
        problem = self._asked(workload) if workload is not None else None
        if workload is None or problem is None or now > held.at + GRACE:
            return None
        ending = Ending.on(self._cluster, held, now)
        return ending if can_be_kept(self._cluster, workload, problem, held, ending) else None

    def _recheck_quota(self, held: Reservation, now: float, *, known: bool) -> bool:
        """Go on holding quota; strike that out where it is in vain, and return whether it stays.

        *known*: the workload waits for the same as when it was last looked at.
        """
        workload, room = self._waiting(held.workload), self._book.room
        if workload is not None and (room is None or room.workload != workload.key):
            if now > held.at + GRACE:
                return self._renew(held, workload, now)
            if (known or self._as_before(held, workload)) and quota_comes_about(
                self._cluster, held
            ):
                return True
        self._drop(held)
        return False

    def _as_before(self, held: Reservation, workload: Workload) -> bool:
        """Return whether a workload still waits for what is reserved."""
        same = until_of(workload, held.at) == held.until and self._asked(workload) is not None
        return same and still_asked(self._cluster, held, workload)

    def _renew(self, held: Reservation, workload: Workload, now: float) -> bool:
        """Find another time for a workload that could not start in time for want of room."""
        self._drop(held)
        self._drop_later(held)
        problem = self._asked(workload)
        return problem is not None and self._enter_quota(workload, problem, now)

    def _stands(self, held: Reservation) -> bool:
        """Return whether a reservation of quota alone is in the book."""
        return self._book.quota.get(held.queue) is held

    # Entering and striking out.

    def _enter_room(self, held: Reservation, ending: Ending) -> None:
        self._book.add(held)
        self._quota.note(held, ending.now)
        self._hold_room(held, ending)

    def _hold_room(self, held: Reservation, ending: Ending) -> None:
        self._next_end = ending.next
        rows = np.array([self._cluster.table.rows[node] for node in held.wanted])
        self._used = rows, self._cluster.table.used[:, rows]
        keep(self._cluster, held, ending)

    def _enter_quota(self, workload: Workload, problem: Problem, now: float) -> bool:
        """Reserve quota alone; return whether a time was found."""
        later = self._quota.later(workload, now)
        if later is None:
            return False
        found = earliest_start_by_quota(self._cluster, workload, problem.least, now, later)
        if found is None:
            return False
        held = replace(reserved(self._cluster, workload, found.at, found.place), wanted={})
        self._book.add(held)
        self._quota.note(held, now)
        return True

    def _strike(self, held: Reservation) -> None:
        hold(self._cluster, held, -1)
        self._book.remove(held)
        self._cluster.touched.add(held.workload)  # what is shown of it is not so
        self._quota.settle()

    def _drop(self, held: Reservation) -> None:
        self._strike(held)
        self._cluster.freed += 1
        if held.wanted:
            self._room_searches.reset()  # it is made anew at once, where that can be

    def _drop_later(self, held: Reservation) -> None:
        """Strike out the quota reserved for later on the ground of a reservation that has come to
        nothing: it would be held at the cost of the workload that was to start before it.
        """
        for one in self._quota.around(held.queue):
            if self._stands(one) and one.at >= held.at:
                self._drop(one)

    def release(self, key: WorkloadKey) -> None:
        """Hold nothing any more for a workload that does not wait any longer."""
        for held in list(self._book):
            if held.workload == key:
                self._drop(held)

    # What others see of it.

    def nodes(self) -> Collection[str]:
        """Return the nodes of the reserved place; what ends there in time is counted on."""
        return self._book.room.wanted if self._book.room is not None else ()

    def placed(self, workload: Workload, placement: Placement, heeded: Heeded, now: float) -> bool:
        """Take note of a placement; one that heeds not all may bring a reservation to naught.

        Returns whether the workload with the room reserved has started: the next reservation is for
        the queue whose turn it is now, and that may have been passed over for the sake of this one.
        """
        if not self._book:
            return False
        self._withheld |= self._placed_in_quota(workload, heeded, now)
        held = self._book.room
        if held is None:
            return False
        inside = any(one.spot.node in held.wanted for one in placement.assignments)
        own = workload.key == held.workload
        if own or (inside and heeded.exempt and not ends_by_then(workload, held, now)):
            self._drop(held)
            self._withheld |= not own
        elif inside:
            hold(self._cluster, held, -1)
            self._hold_room(held, Ending.on(self._cluster, held, now))
        return own

    def _placed_in_quota(self, workload: Workload, heeded: Heeded, now: float) -> bool:
        """Return whether a placement has brought a reservation of quota alone to naught."""
        there, broken = self._quota.around(workload.queue), False
        if not there:
            return False
        self._quota.follow(now)
        for held in [one for one in there if one.workload == workload.key and self._stands(one)]:
            self._strike(held)  # it uses what was held for it, so no other gang gets more
            self._cluster.freed += len(there) >= FOLLOWING  # but one more may reserve quota
        ignored = [one for one in there if all(one is not other for other in heeded.quota)]
        for held in (one for one in ignored if not ends_by_then(workload, one, now)):
            if held is self._book.room and held.workload != workload.key:
                self._cluster.freed += 1  # it is looked at before the next round
            elif self._stands(held):
                broken |= not self._recheck_quota(held, now, known=True)
        return broken

    # Making a reservation.

    def withhold(self) -> None:
        """Make no more reservations in this round: the first in line would not get them."""
        self._withheld = True

    def may_reserve(self, workload: Workload, now: float) -> bool:
        """Return whether a reservation may be made now for a workload that has just not fitted."""
        room = self._book.room
        if self._withheld or not self._cluster.timed or (room and room.workload == workload.key):
            return False
        return self._may_reserve_room(workload, now) or self._may_reserve_quota(workload, now)

    def _may_reserve_room(self, workload: Workload, now: float) -> bool:
        """Return whether room may be reserved now; where another workload has just been looked at
        in vain, that is put off for a moment.
        """
        if self._book.room is not None:
            return False
        if self._room_searches.allows(now):
            return True
        self._room_searches.put_off_first(workload.key, self._cluster.freed, now)
        return False

    def _may_reserve_quota(self, workload: Workload, now: float) -> bool:
        """Return whether it is worth a look by when a workload would be within its limits."""
        queue, searches = workload.queue, self._quota_searches
        if queue in self._book.quota or len(self._quota.around(queue)) >= FOLLOWING:
            return False
        if not self._quota.in_turn(queue) or searches.hopeless(workload.key, now):
            return False
        if searches.allows(now):
            return True
        searches.put_off(workload.key, self._cluster.freed)
        return False

    def reserve(self, workload: Workload, problem: Problem, now: float) -> None:
        """Make a reservation for a workload that has just not fitted, where that may be done.

        One that is over quota gets one of quota alone.
        """
        with self.bypass.lifted(workload, now):
            over = admission.over_quota(self._cluster, workload, problem)
        if over is not None:
            self._reserve_quota(workload, problem, over, now)
        elif self._may_reserve_room(workload, now):
            self._reserve_room(workload, problem, now)

    def _reserve_quota(
        self, workload: Workload, problem: Problem, over: OverQuota, now: float
    ) -> None:
        if over.field == "lending" or not self._may_reserve_quota(workload, now):
            return
        if self._cluster.ledger.keeps and over.account.queue != workload.queue:
            return  # what counts there depends on what its parts use: nothing can be held of it
        if not self._enter_quota(workload, problem, now):
            self._quota_searches.failed(workload.key, now)

    def _reserve_room(self, workload: Workload, problem: Problem, now: float) -> None:
        later = self._quota.later(workload, now)
        found = earliest_start(self._cluster, workload, problem, now, later=later)
        if found is None:
            self._room_searches.failed(workload.key, now)
            return
        self.release(workload.key)
        held = reserved(self._cluster, workload, found.at, found.place)
        self._enter_room(held, Ending.on(self._cluster, held, now))
