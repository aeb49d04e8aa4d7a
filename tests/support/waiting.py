"""Waiting for a condition, instead of for a time."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")
_SOONEST, _LATEST = 0.02, 0.1
"""Seconds between two looks: at first, and after two seconds of waiting."""
MOST = 4.0
"""By how much a busy machine stretches a deadline at most."""


def stretched(deadline: float, load: float | None = None, cores: int | None = None) -> float:
    """Return a deadline in seconds for a machine under load, 60 s at load 4 on 2 cores for 30 s.

    A deadline says how long work takes with a core of its own. At load 4 on 2 cores it has half of
    one, so it takes twice as long, and that is no fault of what is tested.
    """
    load = os.getloadavg()[0] if load is None else load
    return deadline * min(MOST, max(1.0, load / (cores or os.cpu_count() or 1)))


class _Wait:
    """One wait: when to look again, and when to give up."""

    def __init__(self, deadline: float, what: str) -> None:
        self._began, self._deadline, self._what = time.monotonic(), deadline, what

    def pause(self, last: object) -> float:
        """Return the seconds until the next look; after the deadline fail, saying what was seen."""
        waited = time.monotonic() - self._began
        if waited > self._deadline and waited > stretched(self._deadline):
            raise AssertionError(
                f"{self._what} did not come true within {waited:.0f} s "
                f"({self._deadline:g} s on a quiet machine, load is {os.getloadavg()[0]:.0f}); "
                f"last seen: {last!r}"
            )
        return min(_LATEST, max(_SOONEST, waited / 20))


async def eventually(
    probe: Callable[[], Awaitable[T] | T], deadline: float = 60.0, what: str = "the condition"
) -> T:
    """Return the first truthy result of *probe*; after *deadline* s fail, saying what was seen."""
    wait = _Wait(deadline, what)
    while True:
        result = probe()
        if isinstance(result, Awaitable):
            result = await result
        if result:
            return result
        await asyncio.sleep(wait.pause(result))


def eventually_sync(
    probe: Callable[[], T], deadline: float = 60.0, what: str = "the condition"
) -> T:
    """Return the first truthy result of *probe*, for tests without an event loop."""
    wait = _Wait(deadline, what)
    while True:
        result = probe()
        if result:
            return result
        time.sleep(wait.pause(result))
