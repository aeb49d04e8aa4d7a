"""For which gangs the policy of their queue lets others move, and when."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lockstep.api import duration, timestamp
from lockstep.api.queue import DefragmentationPolicy
from lockstep.scheduler.core.model.workload import Workload, WorkloadKey
from lockstep.scheduler.core.quota.inheritance import defragmentation
from lockstep.scheduler.core.state.cluster import Cluster

LOOK_AGAIN, AT_LATEST = 60.0, 960.0
"""Seconds after which it is looked again for a plan for a gang for which there was none: doubled
each time, up to the longer, unless room has been freed since."""


@dataclass(frozen=True, slots=True)
class _Try:
    """When it was last looked for a plan in vain."""

    at: float
    pause: float
    freed: int

    def next(self, freed: int) -> float:
        """Return when to look again."""
        return self.at + (self.pause if freed == self.freed else LOOK_AGAIN)


class PolicyTrigger:
    """Keeps since when gangs wait, and which of them have waited long enough."""

    def __init__(self, cluster: Cluster, default: DefragmentationPolicy | None = None) -> None:
        self._cluster = cluster
        self._default = default
        self._version = -1
        self._any = default is not None
        self._seen: dict[WorkloadKey, float] = {}
        self._tried: dict[WorkloadKey, _Try] = {}
        self.wake_at: float | None = None
        """When the next gang will have waited long enough."""

    def policy(self, queue: str) -> DefragmentationPolicy | None:
        """Return the policy for the gangs of a queue."""
        return defragmentation(self._cluster.ledger.specs, queue) or self._default

    @property
    def in_use(self) -> bool:
        """Return whether there is any policy."""
        ledger = self._cluster.ledger
        if self._version != ledger.version:
            self._version = ledger.version
            stated = (queue.spec.defragmentation for queue in ledger.specs.values())
            self._any = self._default is not None or any(one is not None for one in stated)
        return self._any

    def first(
        self, waiting: Iterable[WorkloadKey], now: float
    ) -> tuple[Workload, DefragmentationPolicy] | None:
        """Return the first of the gangs that wait whose time has come, and the policy for it.

        It is then taken to have been looked at.
        """
        self.wake_at = None
        seen: dict[WorkloadKey, float] = {}
        cooled: dict[str, float] = {}
        found: tuple[Workload, DefragmentationPolicy] | None = None
        for key in waiting:
            workload = self._cluster.workloads[key]
            policy = (
                self.policy(workload.queue) if workload.is_gang and not workload.bound else None
            )
            if policy is None or key in self._cluster.nominations:
                continue
            seen[key] = self._seen.get(key, now)
            if workload.queue not in cooled:
                cooled[workload.queue] = self._cooled(policy)
            ready = _waiting_since(workload, seen[key]) + duration.parse(policy.after)
            last = self._tried.get(key)
            again = last.next(self._cluster.freed) if last is not None else 0.0
            due = max(ready, cooled[workload.queue], again)
            if due > now:
                self.wake_at = min(due, self.wake_at or due)
            elif found is None:
                found = workload, policy
        self._seen = seen
        self._tried = {key: one for key, one in self._tried.items() if key in seen}
        if found is not None:
            self._note(found[0].key, now)
        return found

    def _note(self, key: WorkloadKey, now: float) -> None:
        last, freed = self._tried.get(key), self._cluster.freed
        same = last is not None and last.freed == freed
        pause = min(AT_LATEST, 2 * last.pause) if last is not None and same else LOOK_AGAIN
        self._tried[key] = _Try(now, pause, freed)

    def _cooled(self, policy: DefragmentationPolicy) -> float:
        """Return when the queues of a policy may have others moved again."""
        last = 0.0
        for key, workload in self._cluster.workloads.items():
            shown = self._cluster.defragmentations.get(key)
            if shown is None and workload.gang is not None:
                shown = workload.gang.status.defragmentation
            if shown is None or shown.request:
                continue
            if self.policy(workload.queue) is policy:
                last = max(last, timestamp.read(shown.started_at) or 0.0)
        return last + duration.parse(policy.cool_down) if last else 0.0


def _waiting_since(workload: Workload, seen: float) -> float:
    """Return since when a gang waits: as it shows, else since it was first *seen* to."""
    shown = workload.gang.status.waiting_since if workload.gang is not None else None
    since = timestamp.read(shown)
    return seen if since is None else since
