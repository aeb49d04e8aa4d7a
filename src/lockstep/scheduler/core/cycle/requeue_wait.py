"""Gangs that have made room and come back: their owner makes the pods again once these ended.

Until they are back in line, workloads behind them would take what is free before their turn,
to be evicted when they are there. Why it is waited for them, and for how long, is told in ADR 78.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from lockstep.api.meta import controller_of
from lockstep.scheduler.core.cycle.timers import REQUEUE, Timers
from lockstep.scheduler.core.model.decisions import Eviction
from lockstep.scheduler.core.model.workload import Member, Workload, WorkloadKey
from lockstep.scheduler.core.state.cluster import Cluster


@dataclass(slots=True)
class _Absence:
    """What of a gang has been told to leave."""

    pods: int
    """How many it had."""
    gone: set[str]
    """Uids of those told to leave."""


class RequeueWait:
    """The gangs that have left, or are about to, and are to be in line again in a moment."""

    def __init__(self, cluster: Cluster, timers: Timers) -> None:
        self._cluster = cluster
        self._timers = timers
        self._away: dict[WorkloadKey, _Absence] = {}

    def until(self, now: float) -> float | None:
        """Return the Unix time until which to wait for a gang; None where none is away."""
        self._away = {key: one for key, one in self._away.items() if self._misses(key, one)}
        until = self._timers.until(REQUEUE, now) if self._away else None
        if until is None:
            self._away.clear()
        return until

    def expect(self, evictions: Collection[Eviction], now: float) -> None:
        """Wait for the victims of a round; after one without any the next have a new second."""
        if not evictions:
            if not self._away:
                self._timers.stop(REQUEUE)
            return
        self._timers.start(REQUEUE, now)
        for eviction in evictions:
            self._leave(eviction.victims)

    def cease(self) -> None:
        """Wait for none of those that are away: nothing makes their pods on this clock."""
        self._away.clear()

    def _leave(self, victims: Iterable[Member]) -> None:
        for member in victims:
            workload = self._cluster.workload_of(member)
            gang = workload.gang if workload is not None else None
            if workload is not None and gang is not None and controller_of(gang.metadata):
                one = self._away.setdefault(workload.key, _Absence(_pods(workload), set()))
                one.gone.add(member.uid)

    def _misses(self, key: WorkloadKey, one: _Absence) -> bool:
        workload = self._cluster.workloads.get(key)
        if workload is None or workload.gang is None or workload.over or workload.failed:
            return False
        there = workload.members.values()
        still_there = any(member.uid in one.gone and member.holds for member in there)
        return still_there or _pods(workload) < one.pods


def _pods(workload: Workload) -> int:
    """Return how many pods a gang has that do not end."""
    return sum(pod_group.total for pod_group in workload.pod_groups)
