"""A time and a place for the first workload that does not fit; others pass where they do not delay
it.

Its time is when, by the run times that are stated, enough of what runs will have ended; whatever
states none is never assumed to end, and whatever is overdue neither. Of its place so much is kept
free now as will not be freed by then. What will itself have ended by then may use even that.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

import numpy as np

from lockstep.scheduler.core.model.decisions import Placement
from lockstep.scheduler.core.model.reservation import Reservation
from lockstep.scheduler.core.model.workload import Workload, WorkloadKey
from lockstep.scheduler.core.placement import admission
from lockstep.scheduler.core.placement.problem import Problem
from lockstep.scheduler.core.reservations.bypass import Bypass, ends_by_then
from lockstep.scheduler.core.reservations.earliest_start import earliest_start
from lockstep.scheduler.core.reservations.quota_backfill import QuotaBackfill
from lockstep.scheduler.core.reservations.recovery import recorded
from lockstep.scheduler.core.reservations.reserved_nodes import GRACE, Ending, hold, keep, reserved
from lockstep.scheduler.core.reservations.validity import can_be_kept
from lockstep.scheduler.core.state.cluster import Cluster
from lockstep.scheduler.core.util.array_types import BoolArray, IntArray

RETRY_SECONDS = 1.0
"""Time after which a workload whose time could not be told is looked at again."""


class Backfill:
    """The one reservation there is, and who may ignore it."""

    def __init__(self, cluster: Cluster, problem_of: Callable[[Workload], Problem | None]) -> None:
        """*problem_of* says what a workload asks for; None where it is blocked by itself."""
        self._cluster = cluster
        self._problem_of = problem_of
        self._passing = Bypass(cluster, problem_of)
        self._quota = QuotaBackfill(cluster, problem_of, self._passing)
        self._retry_at = float("-inf")
        self._put_off: tuple[WorkloadKey, int] | None = None
        """Who could not be told a time because somebody else had just been looked at in vain, and
        what was free then; nothing else may happen that would have it tried again."""
        self._moment: tuple[int, ...] = ()
        """That for which the promise was last found to be one that can be kept."""
        self._next_end: float | None = None
        """When the next of those ends that are to end on the reserved place."""
        self._used: tuple[IntArray, IntArray] = np.zeros(0, np.int64), np.zeros((0, 0), np.int64)
        """The rows of the reserved place, and what is used there."""
        self._withheld = False
        """Whether this round promises nothing any more: it has given the place to others while the
        first in line may be through with, or somebody further in front is still to be decided."""
        self._begun = False
        self._passer: WorkloadKey | None = None
        """Who was last let use what is kept."""

    def refresh(self, now: float, *, released: bool) -> None:
        """Keep what must be kept now; give up a reservation that has come to nothing.

        *released*: nothing is kept in the table any more, because its rows have changed.
        """
        if not self._begun:
            self._begun = True
            self._take_up(now)
        self._withheld = False
        self._quota.refresh(now)
        for key in self._quota.due(now):
            self._tell(key, now)
        if self.reservation is not None:
            self._refresh(self.reservation, now, released=released)
        else:
            self._make_up_for(now)

    def _refresh(self, held: Reservation, now: float, *, released: bool) -> None:
        if released:
            held.kept = {}
        moment = self._cluster.freed, self._cluster.table.version, self._cluster.ledger.version
        late = now > GRACE + (held.at if self._next_end is None else self._next_end)
        if moment != self._moment or self._cluster.touched or late or self._taken():
            self._moment = moment
            self._look_again(held, now)

    def _make_up_for(self, now: float) -> None:
        """Tell the time of whom that was put off for, unless all are tried again anyhow."""
        if self._put_off is None or now < self._retry_at:
            return
        (key, freed), self._put_off = self._put_off, None
        if freed == self._cluster.freed:
            self._tell(key, now)

    def _tell(self, key: WorkloadKey, now: float) -> None:
        """Tell the time of a workload that has not been tried again since it did not fit."""
        workload = self._cluster.workloads.get(key)
        if workload is None or not workload.open or key in self._cluster.nominations:
            return  # there is no such workload any more, or others make way for it meanwhile
        problem = self._asked(workload)
        if problem is not None and any(quota.need for quota in problem.needs):
            self.reserve(workload, problem, now)
            self._cluster.touched.add(key)  # it has more to show

    def _asked(self, workload: Workload) -> Problem | None:
        """Return what a workload asks for; None where that cannot be told."""
        try:
            return self._problem_of(workload)
        except Exception:  # it will be met again, and told of, when the workload is decided about
            return None

    def _taken(self) -> bool:
        """Return whether the nodes of the place are used as they were not when last looked at."""
        rows, before = self._used
        return not np.array_equal(self._cluster.table.used[:, rows], before)

    def _look_again(self, held: Reservation, now: float) -> None:
        """Go on keeping a place, as much as is needed now; drop it where that is in vain."""
        hold(self._cluster, held, -1)
        held.kept = {}
        ending = self._in_time(held, now)
        if ending is not None:
            self._keep(held, ending)
        else:
            self.drop()
            self._quota.drop_later(held)

    def _in_time(self, held: Reservation, now: float) -> Ending | None:
        """Return who ends on a place in time, while nothing is kept for it; None where the workload
        cannot start as promised any more.
        """
        workload = self._cluster.workloads.get(held.workload)
        if workload is None or not workload.open or now > held.at + GRACE:
            return None
        if workload.key in self._cluster.nominations:  # it starts when others have made way
            return None
        problem = self._asked(workload)
        ending = Ending.on(self._cluster, held, now)
        if problem is None or not can_be_kept(self._cluster, workload, problem, held, ending):
            return None
        return ending

    def _take_up(self, now: float) -> None:
        """Keep what an earlier leader has promised; nothing has been decided since."""
        for found in recorded(self._cluster):
            ending = self._in_time(found, now)
            if ending is not None:
                self._promise(found, ending)
                return

    def _promise(self, held: Reservation, ending: Ending) -> None:
        self._cluster.reservation = held
        self._quota.note(held, ending.now)
        self._keep(held, ending)

    def _keep(self, held: Reservation, ending: Ending) -> None:
        self._next_end = ending.next
        rows = np.array([self._rows[node] for node in held.wanted])
        self._used = rows, self._cluster.table.used[:, rows]
        keep(self._cluster, held, ending)

    @property
    def wake_at(self) -> float | None:
        """Return when to look again whether a promise is kept, even if nothing happens."""
        held, quota = self.reservation, self._quota.wake_at
        if held is None:
            due = self._retry_at if self._put_off is not None else None
        else:
            due = min(held.at, held.at if self._next_end is None else self._next_end) + 2 * GRACE
        return min((time for time in (due, quota) if time is not None), default=None)

    @property
    def reservation(self) -> Reservation | None:
        """Return the reservation, if there is one."""
        return self._cluster.reservation

    @property
    def _rows(self) -> dict[str, int]:
        return self._cluster.table.rows

    def nodes(self) -> Collection[str]:
        """Return the nodes of the reserved place; what ends there in time is counted on."""
        return self.reservation.wanted if self.reservation is not None else ()

    def drop(self) -> None:
        """Keep nothing for anybody."""
        if self.reservation is not None:
            hold(self._cluster, self.reservation, -1)
            self._cluster.touched.add(self.reservation.workload)  # what is shown of it is not so
            self._cluster.reservation = None
            self._quota.settle()
            self._cluster.freed += 1
            self._retry_at = float("-inf")  # it is made anew at once, where that can be

    def release(self, key: WorkloadKey) -> None:
        """Keep nothing any more for a workload that does not wait any longer."""
        self._quota.release(key)
        if self.reservation is not None and self.reservation.workload == key:
            self.drop()

    def exempt(self, workload: Workload, now: float) -> bool:
        """Return whether a workload need not heed the reservation."""
        held = self.reservation
        return held is None or self._passing.may(workload, held, now)

    def open_to(self, workload: Workload, now: float) -> BoolArray | None:
        """Return the rows on which others may go for a workload's sake; None where that is all.

        What ends on the reserved place is kept for whom it is reserved: a workload that heeds the
        reservation could not stand there, and its victims would have gone for nothing.
        """
        held = self.reservation
        if held is None or self.exempt(workload, now):
            return None
        rows: BoolArray = np.ones(self._cluster.table.capacity, dtype=bool)
        rows[[self._rows[node] for node in held.wanted]] = False
        return rows

    @contextmanager
    def lifted(self, workload: Workload, now: float) -> Iterator[None]:
        """Let a workload that need not heed what is kept for others use that."""
        self._passer = None
        if self._nothing_kept():
            yield
            return
        held = self.reservation if self.exempt(workload, now) else None
        self._passer = None if held is None else workload.key
        with self._quota.lifted(workload, now):
            if held is not None:
                hold(self._cluster, held, -1)
            try:
                yield
            finally:
                if held is not None and self.reservation is held:
                    hold(self._cluster, held, 1)

    def _nothing_kept(self) -> bool:
        return self._cluster.reservation is None and not self._cluster.ledger.quota_reservations

    def placed(self, workload: Workload, placement: Placement, now: float) -> bool:
        """Take note of a placement; one that goes before the reservation may bring it to naught.

        Returns whether the reserved workload itself has started: the next reservation is for the
        queue whose turn it is now, and that may have been passed over for the sake of this one."""
        if self._nothing_kept():
            return False
        self._withheld |= self._quota.placed(workload, now)
        held = self.reservation
        if held is None:
            return False
        nodes = {one.spot.node for one in placement.assignments}
        inside = not nodes.isdisjoint(held.wanted)
        stays = workload.key == self._passer and not ends_by_then(workload, held, now)
        if workload.key == held.workload or (inside and stays):
            self.drop()
            self._withheld |= workload.key != held.workload
        elif inside:
            hold(self._cluster, held, -1)
            self._keep(held, Ending.on(self._cluster, held, now))
        return workload.key == held.workload

    def withhold(self) -> None:
        """Promise nothing in this round any more: it would not be the first in line who got it."""
        self._withheld = True

    def may_promise(self, workload: Workload, now: float) -> bool:
        """Return whether a workload that has just not fitted may be told a time now."""
        held = self.reservation
        if self._withheld or not self._cluster.timed or (held and held.workload == workload.key):
            return False
        room = self._may_reserve(workload, now)
        return room or self._quota.wanted(workload, now)

    def _may_reserve(self, workload: Workload, now: float) -> bool:
        """Return whether a time and a place may be told now: none is yet.

        Where another workload has just been looked at in vain, that is put off for a moment.
        """
        if self.reservation is not None:
            return False
        if now >= self._retry_at:
            return True
        if self._put_off is None and now > self._retry_at - RETRY_SECONDS:
            self._put_off = workload.key, self._cluster.freed
        return False

    def reserve(self, workload: Workload, problem: Problem, now: float) -> None:
        """Tell the time and place of a workload that has just not fitted, where that may be told.

        One that is over quota is told a time alone.
        """
        with self.lifted(workload, now):
            over = admission.over_quota(self._cluster, workload, problem)
        if over is not None:
            self._quota.promise(workload, problem, over, now)
        elif self._may_reserve(workload, now):
            self._reserve(workload, problem, now)

    def _reserve(self, workload: Workload, problem: Problem, now: float) -> None:
        found = earliest_start(
            self._cluster, workload, problem, now, later=self._quota.later(workload, now)
        )
        if found is None:
            self._retry_at = now + RETRY_SECONDS
            return
        self._quota.release(workload.key)
        held = reserved(self._cluster, workload, found.at, found.place)
        self._promise(held, Ending.on(self._cluster, held, now))
