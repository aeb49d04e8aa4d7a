"""Time of a shared card that no share was metered for: a process walks round the front."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

MOST: Final = 5.0
"""Hundredths of a card's time that may be unmetered."""
LASTING: Final = 10.0
"""Seconds for which more than that makes a finding."""


@dataclass(frozen=True, slots=True)
class Seen:
    """Hundredths of a card's time in which anything ran, and that its shares were metered for."""

    busy: float
    metered: float
    gap: bool = False
    """Whether the front of one of its shares could not hold something since the last look."""

    @property
    def unmetered(self) -> float:
        """Return the difference."""
        return max(0.0, self.busy - self.metered)


class Unmetered:
    """Watches shared cards for time that no share was metered for."""

    def __init__(self) -> None:
        self._since: dict[str, float] = {}
        self._told: set[str] = set()

    def look(self, seen: Mapping[str, Seen], now: float) -> dict[str, Seen]:
        """Return the cards on which it has lasted too long, each once until it stops.

        Time beside a gap may be missing by the front's own fault: it is held against no pod.
        """
        found = {}
        for uuid, one in seen.items():
            if one.unmetered <= MOST or one.gap:
                self._since.pop(uuid, None)
                self._told.discard(uuid)
                continue
            since = self._since.setdefault(uuid, now)
            if now - since >= LASTING and uuid not in self._told:
                self._told.add(uuid)
                found[uuid] = one
        for uuid in [uuid for uuid in self._since if uuid not in seen]:
            del self._since[uuid]
            self._told.discard(uuid)
        return found
