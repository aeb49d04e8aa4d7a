"""Which launchers have fallen silent, on a clock that stands still while none can be heard.

Where the API server is away, or only one launcher is there, nothing can be told about any of them:
time counts only as far as others report, so that after an outage no launcher is taken for dead.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from lockstep.api.core import Lease

SILENT_AFTER: Final = 15.0
"""Seconds without a report, while others report, after which a launcher is taken for dead."""
_LONGEST_PAUSE: Final = 6.0
"""Seconds between two reports that count; launchers report every five."""

Key = tuple[str, str]


class Hearing:
    """Listens to the leases as they are seen."""

    def __init__(self) -> None:
        self._renewed: dict[Key, str] = {}
        self._heard: dict[Key, float] = {}
        self._clock = 0.0
        self._last: float | None = None

    def listen(self, leases: Iterable[Lease], now: float) -> None:
        """Take note of which *leases* were renewed since the last time, at the time *now*."""
        news = [
            (key, renewed)
            for lease in leases
            if (renewed := lease.spec.renew_time)
            and self._renewed.get(key := (lease.metadata.namespace, lease.metadata.name)) != renewed
        ]
        if not news:
            return
        if self._last is not None:
            self._clock += min(max(0.0, now - self._last), _LONGEST_PAUSE)
        self._last = now
        for key, renewed in news:
            self._renewed[key], self._heard[key] = renewed, self._clock

    def silent(self, leases: Iterable[Lease]) -> frozenset[str]:
        """Return the names of those among *leases* whose launchers have fallen silent."""
        return frozenset(
            lease.metadata.name
            for lease in leases
            if (heard := self._heard.get((lease.metadata.namespace, lease.metadata.name)))
            is not None
            and self._clock - heard >= SILENT_AFTER
        )
