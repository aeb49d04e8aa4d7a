"""Gangs that give up: those that have waited for their place as long as they say they may."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush

from lockstep.api import duration, timestamp
from lockstep.scheduler.core.blocked import Verdict
from lockstep.scheduler.core.cluster import Cluster
from lockstep.scheduler.core.units import Unit, UnitKey

MAX_WAIT_EXCEEDED = "MaxWaitExceeded"


def deadline(unit: Unit) -> float | None:
    """Return the Unix time at which a waiting gang gives up; None where it never does.

    It counts from when the gang was made, or from when it last lost its whole place.
    """
    gang = unit.gang
    if gang is None or gang.spec.max_wait is None or unit.bound:
        return None
    since = gang.status.waiting_since
    if since is None and gang.status.phase == "Pending":
        since = gang.metadata.creation_timestamp
    began = timestamp.read(since)
    return began + duration.parse(gang.spec.max_wait) if began is not None else None


class TimeOuts:
    """When waiting gangs give up, the next one first."""

    def __init__(self) -> None:
        self._ends: list[tuple[float, UnitKey]] = []
        self._known: dict[UnitKey, float] = {}

    @property
    def next(self) -> float | None:
        """Return when to look again at the latest."""
        return self._ends[0][0] if self._ends else None

    def note(self, unit: Unit) -> None:
        """Take note of a unit that waits, or waits in another way than before."""
        end = deadline(unit)
        if end is not None and self._known.get(unit.key) != end:
            self._known[unit.key] = end
            heappush(self._ends, (end, unit.key))

    def due(self, cluster: Cluster, now: float) -> list[Unit]:
        """Return the gangs that give up by some time if nothing happens to them before."""
        if self.next is None or self.next > now:
            return []
        ending = (_still_waiting(cluster, key, end) for end, key in self._ends if end <= now)
        return [unit for unit in ending if unit is not None]

    def take(self, cluster: Cluster, now: float) -> Iterator[tuple[UnitKey, Verdict]]:
        """Yield the gangs that give up now, and what is said of them."""
        while self._ends and self._ends[0][0] <= now:
            end, key = heappop(self._ends)
            if self._known.get(key) == end:
                del self._known[key]
            unit = _still_waiting(cluster, key, end)
            if unit is None or unit.gang is None:
                continue
            last = unit.gang.status.message
            yield (
                key,
                Verdict(
                    MAX_WAIT_EXCEEDED,
                    f"not placed within {unit.gang.spec.max_wait} (maxWait)"
                    + (f"; last: {last}" if last else ""),
                    "a new gang with new pods, with a longer maxWait or without",
                ),
            )


def _still_waiting(cluster: Cluster, key: UnitKey, end: float) -> Unit | None:
    """Return the unit whose time ends then; None where it has changed since that was noted."""
    unit = cluster.units.get(key)
    return unit if unit is not None and unit.open and deadline(unit) == end else None


def given_up(unit: Unit) -> Verdict | None:
    """Return what was said of a gang when it gave up; None where it has not."""
    if not unit.failed or unit.gang is None:
        return None
    status = unit.gang.status
    return Verdict(status.reason, status.message, status.remedy)
