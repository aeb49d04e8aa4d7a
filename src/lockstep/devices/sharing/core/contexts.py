"""What processes hold of a card beside what they allocated: contexts, and modules of their start.

The driver tells how much a process holds in all. What it did not ask for by the front is its
context's, or kept by a pool for its next allocation. The least that was ever seen is the former.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

SETTLING: Final = 3.0
"""Seconds after which a new process has its context whole."""

ProcessKey = tuple[int, int, str]
"""Process, when it began, and the card."""


@dataclass(frozen=True, slots=True)
class Beside:
    """One process on one card: since when it is known (seconds), and the least seen of it."""

    since: float
    least: int | None = None


def seen(
    known: Mapping[ProcessKey, Beside], found: Mapping[ProcessKey, int | None], now: float
) -> dict[ProcessKey, Beside]:
    """Return what is known after a look; *found* are the bytes beside what was allocated.

    None where the process allocated or freed while it was looked at; processes left out are gone.
    """
    after = {}
    for key, amount in found.items():
        before = known.get(key, Beside(now))
        least = before.least
        if amount is not None and now - before.since >= SETTLING:
            least = amount if least is None else min(least, amount)
        after[key] = Beside(before.since, least)
    return after
