"""Elastic gangs whose pods still arrive: they start a moment later, with more than the minimum.

Whoever makes a gang's pods makes them one by one. A gang that starts with the first few has its
place chosen for those; the rest would have to take what is left around them, or nothing.
"""

from __future__ import annotations

from lockstep.scheduler.core.units import Unit, UnitKey

SECONDS = 0.5
"""Time without another pod after which no more are expected."""


class Gathering:
    """Which gangs are waited with, because pods of theirs have come just now."""

    def __init__(self) -> None:
        self._seen: dict[UnitKey, tuple[int, float]] = {}
        """How many pods a gang had when it was last looked at, and since when so many."""

    def until(self, unit: Unit, now: float) -> float | None:
        """Return the Unix time until which to wait for more pods; None where not to."""
        if not _incomplete(unit):
            self._seen.pop(unit.key, None)
            return None
        number = sum(muster.total for muster in unit.musters)
        before, since = self._seen.get(unit.key, (0, now))
        if number > before:
            since = now
        self._seen[unit.key] = number, since
        return since + SECONDS if now < since + SECONDS else None

    def forget(self, key: UnitKey) -> None:
        """Remember nothing of a gang that waits no more."""
        self._seen.pop(key, None)


def _incomplete(unit: Unit) -> bool:
    """Return whether nothing of a gang stands, and it has fewer pods than it would start with."""
    wanted = [(muster.group.desired, muster) for muster in unit.musters]
    if not any(desired and muster.total < desired for desired, muster in wanted):
        return False
    return not unit.bound
