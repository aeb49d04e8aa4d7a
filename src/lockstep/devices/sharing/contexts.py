"""Looks how much memory the processes of shares hold beside what they allocated."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from lockstep.devices.sharing.core.asks import MIB
from lockstep.devices.sharing.core.contexts import Beside, ProcessKey, seen
from lockstep.devices.sharing.granting import Held

Running = Mapping[str, Mapping[int, int]]
"""By card's UUID and process, the bytes that it holds, as the driver knows it."""


class Contexts:
    """Compares what the driver says with what the front counted, look by look."""

    def __init__(self, running: Callable[[set[str]], Running]) -> None:
        """*running* asks the driver about some cards."""
        self._running = running
        self._known: dict[ProcessKey, Beside] = {}

    def look(self, shares: Iterable[Held], now: float) -> None:
        """Note on each of the *shares* what its processes hold beside; *now* is in seconds."""
        limited = [one for one in shares if one.grant.memory]
        before = [one.region.processes() for one in limited]
        running = self._running({uuid for one in limited for uuid in one.grant.cards})
        found: dict[ProcessKey, int | None] = {}
        for one, was in zip(limited, before, strict=True):
            for (pid, start), used in one.region.processes().items():
                for card, uuid in enumerate(one.grant.cards[: one.cards]):
                    held = running.get(uuid, {}).get(pid)
                    if held is None:
                        continue
                    still = was.get((pid, start), ())[card : card + 1] == (used[card],)
                    found[pid, start, uuid] = (
                        max(0, held - used[card]) // MIB * MIB if still else None
                    )
        self._known = seen(self._known, found, now)
        for one in limited:
            one.beside = [self._of(one, uuid) for uuid in one.grant.cards]

    def _of(self, one: Held, uuid: str) -> int:
        known = (self._known.get((pid, start, uuid)) for pid, start in one.region.processes())
        return sum(found.least or 0 for found in known if found is not None)
