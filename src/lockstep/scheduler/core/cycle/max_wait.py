"""Gangs that give up: those that have waited for their place as long as they say they may."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush

from lockstep.api import duration, timestamp
from lockstep.scheduler.core.model.decisions import Verdict
from lockstep.scheduler.core.model.workload import Workload, WorkloadKey
from lockstep.scheduler.core.state.cluster import Cluster

MAX_WAIT_EXCEEDED = "MaxWaitExceeded"


def deadline(workload: Workload) -> float | None:
    """Return the Unix time at which a waiting gang gives up; None where it never does.

    It counts from when the gang was made, or from when it last lost its whole place.
    """
    gang = workload.gang
    if gang is None or gang.spec.max_wait is None or workload.bound:
        return None
    since = gang.status.waiting_since
    if since is None and gang.status.phase == "Pending":
        since = gang.metadata.creation_timestamp
    began = timestamp.read(since)
    return began + duration.parse(gang.spec.max_wait) if began is not None else None


class MaxWaits:
    """When waiting gangs give up, the next one first."""

    def __init__(self) -> None:
        self._ends: list[tuple[float, WorkloadKey]] = []
        self._known: dict[WorkloadKey, float] = {}

    @property
    def next(self) -> float | None:
        """Return when to look again at the latest."""
        return self._ends[0][0] if self._ends else None

    def note(self, workload: Workload) -> None:
        """Take note of a workload that waits, or waits in another way than before."""
        end = deadline(workload)
        if end is not None and self._known.get(workload.key) != end:
            self._known[workload.key] = end
            heappush(self._ends, (end, workload.key))

    def due(self, cluster: Cluster, now: float) -> list[Workload]:
        """Return the gangs that give up by some time if nothing happens to them before."""
        if self.next is None or self.next > now:
            return []
        ending = (_still_waiting(cluster, key, end) for end, key in self._ends if end <= now)
        return [workload for workload in ending if workload is not None]

    def take(self, cluster: Cluster, now: float) -> Iterator[tuple[WorkloadKey, Verdict]]:
        """Yield the gangs that give up now, and what is said of them."""
        while self._ends and self._ends[0][0] <= now:
            end, key = heappop(self._ends)
            if self._known.get(key) == end:
                del self._known[key]
            workload = _still_waiting(cluster, key, end)
            if workload is None or workload.gang is None:
                continue
            last = workload.gang.status.message
            yield (
                key,
                Verdict(
                    MAX_WAIT_EXCEEDED,
                    f"not placed within {workload.gang.spec.max_wait} (maxWait)"
                    + (f"; last: {last}" if last else ""),
                    "a new gang with new pods, with a longer maxWait or without",
                ),
            )


def _still_waiting(cluster: Cluster, key: WorkloadKey, end: float) -> Workload | None:
    """Return the workload whose time ends then; None where it has changed since that was noted."""
    workload = cluster.workloads.get(key)
    return (
        workload if workload is not None and workload.open and deadline(workload) == end else None
    )


def given_up(workload: Workload) -> Verdict | None:
    """Return what was said of a gang when it gave up; None where it has not."""
    if not workload.failed or workload.gang is None:
        return None
    status = workload.gang.status
    return Verdict(status.reason, status.message, status.remedy)
