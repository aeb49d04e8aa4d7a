"""A time and a place for the first unit that does not fit; others pass where they do not delay it.

Its time is when, by the run times that are stated, enough of what runs will have ended; whatever
states none is never assumed to end, and whatever is overdue neither. Of its place so much is kept
free now as will not be freed by then. What will itself have ended by then may use even that.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from lockstep.scheduler.core.cluster import Cluster
from lockstep.scheduler.core.nodes import IntArray, natural
from lockstep.scheduler.core.preemption.rights import has_claim
from lockstep.scheduler.core.preemption.supposition import Supposition
from lockstep.scheduler.core.problem import Problem
from lockstep.scheduler.core.units import Member, Unit, UnitKey

Turn = tuple[str, str, tuple[tuple[int, int | str], ...]]

RETRY_SECONDS = 1.0
"""Time after which a unit whose time could not be told is looked at again."""
GRACE = 0.5
"""Seconds past its time for which a place is still kept: ends are seen a moment after they come."""


@dataclass(slots=True)
class Reservation:
    """When and where a waiting unit is to start at the latest, as far as is known."""

    unit: UnitKey
    at: float
    queue: str
    priority: int
    turn: Turn
    """Age and name: what orders units of one priority in one queue."""
    wanted: dict[str, IntArray]
    """By node, what the unit takes there: an amount for each column of the table."""
    kept: dict[str, tuple[IntArray, IntArray]]
    """By node where anything is kept free now: the columns of the table, and how much of each."""


def end_of(cluster: Cluster, member: Member) -> float | None:
    """Return when a pod that has a node will have ended; None where that is not known."""
    unit = cluster.units.get(member.unit) if member.unit is not None else None
    runtime = unit.runtime if unit is not None and unit.is_gang else member.runtime
    since = member.since
    return since + runtime if since is not None and runtime is not None else None


@contextmanager
def own_place(cluster: Cluster, key: UnitKey) -> Iterator[None]:
    """Let what is kept for a unit be free for a moment, as it is for the unit itself."""
    held = cluster.reservation
    if held is None or held.unit != key:
        yield
        return
    _hold(cluster, held, -1)
    try:
        yield
    finally:
        _hold(cluster, held, 1)


def _hold(cluster: Cluster, held: Reservation, times: int) -> None:
    for node, (columns, amounts) in held.kept.items():
        row = cluster.table.rows.get(node)
        if row is not None:
            cluster.table.hold(row, columns, amounts, times)


class Backfill:
    """The one reservation there is, and who may ignore it."""

    def __init__(self, cluster: Cluster, problem_of: Callable[[Unit], Problem | None]) -> None:
        """*problem_of* says what a unit asks for; None where it is blocked by itself."""
        self._cluster = cluster
        self._problem_of = problem_of
        self._retry_at = float("-inf")
        self._moment: tuple[int, ...] = ()

    def refresh(self, now: float, *, released: bool) -> None:
        """Keep what must be kept now; give up a reservation that has come to nothing.

        *released*: nothing is kept in the table any more, because its rows have changed.
        """
        held = self.reservation
        if held is None:
            return
        if released:
            held.kept = {}
        unit = self._cluster.units.get(held.unit)
        gone = unit is None or not unit.open or any(n not in self._rows for n in held.wanted)
        if gone or now > held.at + GRACE:
            self.drop()
            return
        moment = (self._cluster.freed, self._cluster.table.version)
        if moment != self._moment:
            self._moment = moment
            self._keep_again(held, now)

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
            _hold(self._cluster, self.reservation, -1)
            self._cluster.reservation = None
            self._cluster.freed += 1

    def release(self, key: UnitKey) -> None:
        """Keep nothing any more for a unit that does not wait any longer."""
        if self.reservation is not None and self.reservation.unit == key:
            self.drop()

    def exempt(self, unit: Unit, now: float) -> bool:
        """Return whether a unit need not heed the reservation: it is its own, it goes before, or
        it will have ended by then.
        """
        held = self.reservation
        if held is None or unit.key == held.unit:
            return True
        if self._before(unit, held):
            return True
        runtime = unit.runtime
        return runtime is not None and (unit.since or now) + runtime <= held.at

    def _before(self, unit: Unit, held: Reservation) -> bool:
        """Return whether a unit's turn comes before that of the one waited for, whatever is kept.

        Of its own queue that may also be an older one, which has lost its place and waits again. Of
        another queue it may be one that claims what is guaranteed there from who would borrow it.
        """
        priority = self._cluster.priority(unit)
        if unit.queue != held.queue:
            return priority > held.priority or self._claims(unit, held)
        if priority != held.priority:
            return priority > held.priority
        return _turn(unit) < held.turn

    def _claims(self, unit: Unit, held: Reservation) -> bool:
        waits = self._cluster.units.get(held.unit)
        return self._has_claim(unit) and (waits is None or not self._has_claim(waits))

    def _has_claim(self, unit: Unit) -> bool:
        problem = self._problem_of(unit)
        return problem is not None and has_claim(self._cluster, unit, problem)

    @contextmanager
    def lifted(self, unit: Unit, now: float) -> Iterator[None]:
        """Let a unit that need not heed the reservation use what is kept."""
        held = self.reservation
        if held is None or not self.exempt(unit, now):
            yield
            return
        _hold(self._cluster, held, -1)
        try:
            yield
        finally:
            if self.reservation is held:
                _hold(self._cluster, held, 1)

    def placed(self, unit: Unit, nodes: set[str], now: float) -> None:
        """Take note of a placement; one that goes before the reservation may bring it to naught."""
        held = self.reservation
        if held is None:
            return
        mine = unit.key == held.unit
        if mine or (nodes & held.wanted.keys() and self._before(unit, held)):
            self.drop()
        elif nodes & held.wanted.keys():
            self._keep_again(held, now)

    def reserve(self, unit: Unit, problem: Problem, now: float) -> None:
        """Tell the time and place of a unit that has just not fitted, if none is told already."""
        if self.reservation is not None or not self._cluster.timed or now < self._retry_at:
            return
        found = self._earliest(unit, problem, now)
        if found is None:
            self._retry_at = now + RETRY_SECONDS
            return
        self._cluster.reservation = found
        self._keep(found, now)

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
        placement = state.place(problem, unit.key)
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
            found = state.place(problem, unit.key)
            if found is None:
                low = middle + 1
            else:
                high, placement = middle, found
        at = ends[high - 1] if high else now
        wanted: dict[str, IntArray] = {}
        for one in placement.assignments:
            total = wanted.setdefault(one.spot.node, self._nothing())
            total[one.member.shape.columns] += one.member.shape.amounts
        priority = self._cluster.priority(unit)
        return Reservation(unit.key, at, unit.queue, priority, _turn(unit), wanted, {})

    def _nothing(self) -> IntArray:
        return np.zeros(len(self._cluster.table.free), dtype=np.int64)

    def _keep_again(self, held: Reservation, now: float) -> None:
        _hold(self._cluster, held, -1)
        self._keep(held, now)

    def _keep(self, held: Reservation, now: float) -> None:
        """Keep of the place what those that end in time do not free."""
        held.kept = {}
        for node, wanted in held.wanted.items():
            ending = self._nothing()
            for member in self._cluster.on_node(node):
                end = end_of(self._cluster, member)
                if member.terminating or (end is not None and now < end <= held.at):
                    ending[member.shape.columns] += member.shape.amounts
            missing = np.maximum(wanted_as_wide(wanted, len(ending)) - ending, 0)
            columns = np.flatnonzero(missing)
            if len(columns):
                held.kept[node] = columns, missing[columns]
        _hold(self._cluster, held, 1)


def _turn(unit: Unit) -> Turn:
    return unit.queued_at, unit.key.namespace, natural(unit.key.name)


def wanted_as_wide(amounts: IntArray, width: int) -> IntArray:
    """Return amounts with a zero for each column that has come since."""
    return np.pad(amounts, (0, width - len(amounts)))
