"""How long each job waited for its input on this node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

MOST: Final = 50
"""Jobs that are remembered for a dataset; the one that read last longest ago is forgotten first."""


@dataclass
class Waits:
    """Seconds by job: what readers of a dataset waited goes to the jobs that read meanwhile."""

    seconds: dict[str, float] = field(default_factory=dict)
    _total: float = 0.0
    _jobs: tuple[str, ...] = ()

    def note(self, total: float, jobs: Iterable[str]) -> None:
        """Take that readers waited *total* seconds by now, and that *jobs* read from now on.

        A total below the one before is that of a cache that began anew.
        """
        waited = total - self._total if total >= self._total else total
        self._total = total
        for job in self._jobs:
            self.seconds[job] = self.seconds.pop(job, 0.0) + waited / len(self._jobs)
        self._jobs = tuple(sorted(jobs))
        while len(self.seconds) > MOST:
            del self.seconds[next(iter(self.seconds))]

    def shown(self) -> Mapping[str, float]:
        """Return the seconds by job, as they are told."""
        return {job: round(seconds, 1) for job, seconds in self.seconds.items()}
