"""What shares used since the last look, as a DeviceUsage says it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from lockstep.api.device_usage import ShareUsage
from lockstep.devices.core.model import Card
from lockstep.devices.sharing.core.asks import MIB
from lockstep.devices.sharing.core.exposition import Key, Use


class Accounts:
    """Remembers counters, so that what was used since then can be told."""

    def __init__(self) -> None:
        self._before: dict[Key, Use] = {}
        self._at: float | None = None
        self.recent: Mapping[Key, int] = {}
        """Hundredths of its card's time that each share used between the last two looks."""

    def usage(self, uses: Iterable[Use], cards: Sequence[Card], now: float) -> list[ShareUsage]:
        """Return what each share uses of each card, in hundredths of the time since the last look.

        *now* is in seconds.
        """
        indices = {card.uuid: card.index for card in cards}
        passed = now - self._at if self._at is not None else 0.0
        before, self._before, self._at = self._before, {}, now
        recent, found = {}, []
        for one in uses:
            last = before.get(one.key, one)
            self._before[one.key] = one
            used = recent[one.key] = _hundredths(one.busy - last.busy, passed)
            if one.uuid in indices:
                held_back = _hundredths(one.throttled - last.throttled, passed)
                found.append(_stated(one, indices[one.uuid], used, held_back))
        self.recent = recent
        return found

    def with_recent(self, uses: Iterable[Use]) -> list[Use]:
        """Return *uses* with what each used lately."""
        return [replace(one, recent=self.recent.get(one.key, 0)) for one in uses]


def metered(uses: Iterable[Use]) -> dict[str, int]:
    """Return the nanoseconds of each card that its shares were metered for since they began."""
    found: dict[str, int] = defaultdict(int)
    for one in uses:
        found[one.uuid] += one.busy
    return dict(found)


def _stated(one: Use, index: int, used: int, held_back: int) -> ShareUsage:
    return ShareUsage(
        pod=f"{one.namespace}/{one.pod}",
        container=one.container,
        gpu=index,
        memory=one.limit // MIB,
        memory_used=-(-one.memory // MIB),
        compute=one.compute,
        compute_used=used,
        policy=one.policy,
        throttled=held_back,
        refused=one.refused,
        unknown_calls=one.unknown,
        alone=bool(one.fallback),
    )


def _hundredths(nanoseconds: int, seconds: float) -> int:
    return max(0, min(100, round(nanoseconds / (seconds * 1e7)))) if seconds > 0 else 0
