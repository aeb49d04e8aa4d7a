"""Water marks: when offline shares of a card pause for its online ones, and when they go on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

HIGH_BUSY: Final = 0.9
"""Part of a card's time from which on its online shares leave nothing to others."""
LOW_BUSY: Final = 0.7
HIGH_BEHIND: Final = 10_000_000
"""Nanoseconds that an online share may be behind what it is owed."""
LOW_BEHIND: Final = 2_000_000
MEMORY: Final = 100_000_000
"""Nanoseconds over which use is averaged."""


@dataclass(frozen=True, slots=True)
class Pressure:
    """How busy online shares keep a card, and whether offline ones pause for them."""

    busy: float = 0.0
    paused: bool = False


def pressed(before: Pressure, used: int, behind: int, elapsed: int) -> Pressure:
    """Return the pressure after *elapsed* nanoseconds, of which online shares used some.

    *behind* is how much the worst of them is owed beyond a period. Between the marks all stays as
    it is, so that offline shares do not stop and go with every kernel.
    """
    if elapsed <= 0:
        return before
    fresh = min(1.0, elapsed / MEMORY)
    busy = before.busy * (1 - fresh) + min(1.0, used / elapsed) * fresh
    if busy > HIGH_BUSY or behind > HIGH_BEHIND:
        return Pressure(busy, paused=True)
    if busy < LOW_BUSY and behind < LOW_BEHIND:
        return Pressure(busy, paused=False)
    return Pressure(busy, before.paused)
