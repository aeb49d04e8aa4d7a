"""Events are kept for an hour."""

from __future__ import annotations

from typing import Final

from lockstep.apiserver.gc.model import Action, Delete, Place

EVENT_LIFETIME: Final = 3600.0


class Expiry:
    """Objects in the order in which they expire; writing one anew gives it a new lifetime."""

    def __init__(self, lifetime: float = EVENT_LIFETIME) -> None:
        self._lifetime = lifetime
        self._written: dict[Place, tuple[float, str]] = {}

    def seen(self, place: Place, uid: str, now: float) -> None:
        """Take note that an object was written; calls come in the order of time."""
        self._written.pop(place, None)
        self._written[place] = (now, uid)

    def gone(self, place: Place) -> None:
        """Take note that an object is gone."""
        self._written.pop(place, None)

    def next_due(self) -> float | None:
        """Return when the next object expires, if there is one."""
        first = next(iter(self._written.values()), None)
        return None if first is None else first[0] + self._lifetime

    def due(self, now: float, limit: int = 1000) -> list[Action]:
        """Return the deletion of what has expired; it is not returned again before a lifetime."""
        expired: list[tuple[Place, str]] = []
        for place, (written, uid) in self._written.items():
            if now - written < self._lifetime or len(expired) == limit:
                break
            expired.append((place, uid))
        for place, uid in expired:
            self.seen(place, uid, now)
        return [Delete(place, uid) for place, uid in expired]
