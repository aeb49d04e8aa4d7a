"""Elastic gangs whose pods still arrive: they start a moment later, with more than the minimum.

Whoever makes a gang's pods makes them one by one. A gang that starts with the first few has its
place chosen for those; the rest would have to take what is left around them, or nothing.
"""

from __future__ import annotations

from lockstep.scheduler.core.model.workload import Workload, WorkloadKey

ARRIVAL_SECONDS = 0.5
"""Time without another pod after which no more are expected."""


class ArrivalWait:
    """Which gangs are waited with, because pods of theirs have come just now."""

    def __init__(self) -> None:
        self._seen: dict[WorkloadKey, tuple[int, float]] = {}
        """How many pods a gang had when it was last looked at, and since when so many."""

    def until(self, workload: Workload, now: float) -> float | None:
        """Return the Unix time until which to wait for more pods; None where not to."""
        if not _incomplete(workload):
            self._seen.pop(workload.key, None)
            return None
        number = sum(pod_group.total for pod_group in workload.pod_groups)
        before, since = self._seen.get(workload.key, (0, now))
        if number > before:
            since = now
        self._seen[workload.key] = number, since
        return since + ARRIVAL_SECONDS if now < since + ARRIVAL_SECONDS else None

    def forget(self, key: WorkloadKey) -> None:
        """Remember nothing of a gang that waits no more."""
        self._seen.pop(key, None)


def _incomplete(workload: Workload) -> bool:
    """Return whether nothing of a gang stands, and it has fewer pods than it would start with."""
    wanted = [(pod_group.group.desired, pod_group) for pod_group in workload.pod_groups]
    if not any(desired and pod_group.total < desired for desired, pod_group in wanted):
        return False
    return not workload.bound
