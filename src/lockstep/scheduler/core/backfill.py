"""A time and a place for the first unit that does not fit; others pass where they do not delay it.

Its time is when, by the run times that are stated, enough of what runs will have ended; whatever
states none is never assumed to end, and whatever is overdue neither. Of its place so much is kept
free now as will not be freed by then. What will itself have ended by then may use even that.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from math import ceil

import numpy as np

from lockstep.scheduler.core.arrays import BoolArray, IntArray
from lockstep.scheduler.core.cluster import Cluster
from lockstep.scheduler.core.kept_room import GRACE, Ending, end_of, hold, keep, reserved
from lockstep.scheduler.core.preemption.claims import claims_from
from lockstep.scheduler.core.preemption.supposition import Supposition
from lockstep.scheduler.core.problem import Problem
from lockstep.scheduler.core.promises import can_be_kept
from lockstep.scheduler.core.queues import admission
from lockstep.scheduler.core.reservation import Reservation, turn_of
from lockstep.scheduler.core.succession import recorded
from lockstep.scheduler.core.units import Member, Unit, UnitKey

RETRY_SECONDS = 1.0
"""Time after which a unit whose time could not be told is looked at again."""


class Backfill:
    """The one reservation there is, and who may ignore it."""

    def __init__(self, cluster: Cluster, problem_of: Callable[[Unit], Problem | None]) -> None:
        """*problem_of* says what a unit asks for; None where it is blocked by itself."""
        self._cluster = cluster
        self._problem_of = problem_of
        self._retry_at = float("-inf")
        self._put_off: tuple[UnitKey, int] | None = None
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
        self._passing: UnitKey | None = None
        """Who was last let use what is kept."""

    def refresh(self, now: float, *, released: bool) -> None:
        """Keep what must be kept now; give up a reservation that has come to nothing.

        *released*: nothing is kept in the table any more, because its rows have changed.
        """
        if not self._begun:
            self._begun = True
            self._take_up(now)
        self._withheld = False
        held = self.reservation
        if held is None:
            self._make_up_for(now)
            return
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
        unit = self._cluster.units.get(key)
        if unit is None or not unit.open or freed != self._cluster.freed:
            return
        if key in self._cluster.nominations:  # others make way for it meanwhile
            return
        problem = self._asked(unit)
        if problem is None or not any(quota.need for quota in problem.needs):
            return
        if admission.over_quota(self._cluster, unit, problem) is None:
            self.reserve(unit, problem, now)
            self._cluster.touched.add(key)  # it has more to show

    def _asked(self, unit: Unit) -> Problem | None:
        """Return what a unit asks for; None where that cannot be told."""
        try:
            return self._problem_of(unit)
        except Exception:  # it will be met again, and told of, when the unit is decided about
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

    def _in_time(self, held: Reservation, now: float) -> Ending | None:
        """Return who ends on a place in time, while nothing is kept for it; None where the unit
        cannot start as promised any more.
        """
        unit = self._cluster.units.get(held.unit)
        if unit is None or not unit.open or now > held.at + GRACE:
            return None
        if unit.key in self._cluster.nominations:  # it starts when others have made way
            return None
        problem = self._asked(unit)
        ending = Ending.on(self._cluster, held, now)
        if problem is None or not can_be_kept(self._cluster, unit, problem, held, ending):
            return None
        return ending

    def _take_up(self, now: float) -> None:
        """Keep what an earlier leader has promised; nothing has been decided since."""
        for found in recorded(self._cluster):
            ending = self._in_time(found, now)
            if ending is not None:
                self._cluster.reservation = found
                self._keep(found, ending)
                return

    def _keep(self, held: Reservation, ending: Ending) -> None:
        self._next_end = ending.next
        rows = np.array([self._rows[node] for node in held.wanted])
        self._used = rows, self._cluster.table.used[:, rows]
        keep(self._cluster, held, ending)

    @property
    def wake_at(self) -> float | None:
        """Return when to look again whether a promise is kept, even if nothing happens."""
        held = self.reservation
        if held is None:
            return self._retry_at if self._put_off is not None else None
        return min(held.at, held.at if self._next_end is None else self._next_end) + 2 * GRACE

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
            self._cluster.touched.add(self.reservation.unit)  # what is shown of it is not so
            self._cluster.reservation = None
            self._cluster.freed += 1
            self._retry_at = float("-inf")  # it is made anew at once, where that can be

    def release(self, key: UnitKey) -> None:
        """Keep nothing any more for a unit that does not wait any longer."""
        if self.reservation is not None and self.reservation.unit == key:
            self.drop()

    def exempt(self, unit: Unit, now: float) -> bool:
        """Return whether a unit need not heed the reservation: it is its own, it goes before, it
        will have ended by then, or others have gone for its place by now.
        """
        held = self.reservation
        if held is None or unit.key == held.unit or unit.key in self._cluster.nominations:
            return True
        return self._before(unit, held) or _ends_in_time(unit, held, now)

    def open_to(self, unit: Unit, now: float) -> BoolArray | None:
        """Return the rows on which others may go for a unit's sake; None where that is all.

        What ends on the reserved place is kept for whom it is reserved: a unit that heeds the
        reservation could not stand there, and its victims would have gone for nothing.
        """
        held = self.reservation
        if held is None or self.exempt(unit, now):
            return None
        rows: BoolArray = np.ones(self._cluster.table.capacity, dtype=bool)
        rows[[self._rows[node] for node in held.wanted]] = False
        return rows

    def _before(self, unit: Unit, held: Reservation) -> bool:
        """Return whether a unit's turn comes before that of the one waited for, whatever is kept.

        Of its own queue that may also be an older one, which has lost its place and waits again. Of
        another queue it may be one that claims what is guaranteed there from who would borrow it.
        """
        priority = self._cluster.priorities.of(unit)
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
        problem = self._problem_of(unit)
        return problem is not None and claims_from(self._cluster, unit, problem, queue)

    @contextmanager
    def lifted(self, unit: Unit, now: float) -> Iterator[None]:
        """Let a unit that need not heed the reservation use what is kept."""
        held = self.reservation
        self._passing = None
        if held is None or not self.exempt(unit, now):
            yield
            return
        self._passing = unit.key
        hold(self._cluster, held, -1)
        try:
            yield
        finally:
            if self.reservation is held:
                hold(self._cluster, held, 1)

    def placed(self, unit: Unit, nodes: set[str], now: float) -> None:
        """Take note of a placement; one that goes before the reservation may bring it to naught."""
        held = self.reservation
        if held is None:
            return
        inside = not nodes.isdisjoint(held.wanted)
        stays = unit.key == self._passing and not _ends_in_time(unit, held, now)
        if unit.key == held.unit or (inside and stays):
            self.drop()
            self._withheld = unit.key != held.unit
        elif inside:
            hold(self._cluster, held, -1)
            self._keep(held, Ending.on(self._cluster, held, now))

    def withhold(self) -> None:
        """Promise nothing in this round any more: it would not be the first in line who got it."""
        self._withheld = True

    def may_reserve(self, unit: Unit, now: float) -> bool:
        """Return whether a time and a place may be told now: none is yet, and runs state theirs.

        Where another unit has just been looked at in vain, that is put off for a moment.
        """
        if self.reservation is not None or self._withheld or not self._cluster.timed:
            return False
        if now >= self._retry_at:
            return True
        if self._put_off is None and now > self._retry_at - RETRY_SECONDS:
            self._put_off = unit.key, self._cluster.freed
        return False

    def reserve(self, unit: Unit, problem: Problem, now: float) -> None:
        """Tell the time and place of a unit that has just not fitted, where that may be told."""
        found = self._earliest(unit, problem, now)
        if found is None:
            self._retry_at = now + RETRY_SECONDS
            return
        self._cluster.reservation = found
        self._keep(found, Ending.on(self._cluster, found, now))

    def _earliest(self, unit: Unit, problem: Problem, now: float) -> Reservation | None:
        """Find by halving after how many of the stated ends the unit fits."""
        by_end: dict[float, list[Member]] = {}
        for member in self._cluster.pods.values():
            end = end_of(self._cluster, member) if member.holds else None
            if end is not None and end > now:
                by_end.setdefault(end, []).append(member)
        ends = sorted(by_end)
        state = Supposition(self._cluster, self._cluster.leaving.values())
        for end in ends:
            state.vacate(by_end[end])
        placement = admission.place(self._cluster, unit, problem, state=state)
        if placement is None:
            return None
        low, high, there = 0, len(ends), len(ends)
        while low < high:
            middle = (low + high) // 2
            for end in ends[middle:there]:
                state.restore(by_end[end])
            for end in ends[there:middle]:
                state.vacate(by_end[end])
            there = middle
            found = admission.place(self._cluster, unit, problem, state=state)
            if found is None:
                low = middle + 1
            else:
                high, placement = middle, found
        at = ceil(ends[high - 1] if high else now)
        place = {one.member: one.spot.node for one in placement.assignments}
        return reserved(self._cluster, unit, at, place)


def _ends_in_time(unit: Unit, held: Reservation, now: float) -> bool:
    """Return whether a unit will have ended by the time that was told, if it starts now."""
    runtime = unit.runtime
    return runtime is not None and (unit.since or now) + runtime <= held.at
