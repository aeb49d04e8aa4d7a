"""How often the book looks in vain for the time at which a workload starts: so often a second."""

from __future__ import annotations

from itertools import islice
from math import inf

from lockstep.scheduler.core.model.workload import WorkloadKey

RETRY_SECONDS = 1.0
"""Time in which so many searches in vain are allowed; a workload beyond them is put off."""
HOPELESS_SECONDS = 10.0
"""Time for which a workload counts as one for which no time was found."""


class SearchLimit:
    """The latest searches in vain, and the workloads that are put off because of them."""

    def __init__(self, most: int) -> None:
        """*most*: searches in vain that ``RETRY_SECONDS`` may see."""
        self._most = most
        self._in_vain: dict[WorkloadKey, float] = {}
        """By workload when its last search in vain was, the latest last."""
        self.waiting: dict[WorkloadKey, int] = {}
        """Workloads that are put off, and what was free then; nothing else may happen that would
        have them tried again."""

    @property
    def open_at(self) -> float:
        """Return when one more search is allowed; minus infinity where it always was."""
        return next(islice(reversed(self._in_vain.values()), self._most - 1, None), -inf) + (
            RETRY_SECONDS
        )

    def allows(self, now: float) -> bool:
        """Return whether one more search is allowed now."""
        return now >= self.open_at

    def hopeless(self, key: WorkloadKey, now: float) -> bool:
        """Return whether a search for a workload was in vain a short time ago."""
        self._forget(now - HOPELESS_SECONDS)
        return key in self._in_vain

    def failed(self, key: WorkloadKey, now: float) -> None:
        """Take note of a search in vain."""
        self._forget(now - HOPELESS_SECONDS)
        self._in_vain.pop(key, None)
        self._in_vain[key] = now

    def _forget(self, until: float) -> None:
        while self._in_vain and next(iter(self._in_vain.values())) <= until:
            del self._in_vain[next(iter(self._in_vain))]

    def reset(self) -> None:
        """Forget all searches in vain."""
        self._in_vain.clear()

    def put_off(self, key: WorkloadKey, freed: int) -> None:
        """Have a workload looked at later, unless more than *freed* becomes free before."""
        self.waiting[key] = freed

    def put_off_first(self, key: WorkloadKey, freed: int, now: float) -> None:
        """Put a workload off if it is the first one to ask since the moment of the last search."""
        if not self.waiting and now > self.open_at - RETRY_SECONDS:
            self.waiting[key] = freed

    def due(self, now: float, freed: int) -> list[WorkloadKey]:
        """Return the workloads put off that are due, unless all are tried again anyhow."""
        if now < self.open_at:
            return []
        found, self.waiting = [key for key, was in self.waiting.items() if was == freed], {}
        return found
