"""Waiting for a condition, instead of for a time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


async def eventually(
    probe: Callable[[], Awaitable[T] | T], deadline: float = 60.0, what: str = "the condition"
) -> T:
    """Return the first truthy result of *probe*; after *deadline* s fail, saying what was seen."""
    end = time.monotonic() + deadline
    last: object = None
    while True:
        result = probe()
        if isinstance(result, Awaitable):
            result = await result
        if result:
            return result
        last = result
        if time.monotonic() > end:
            raise AssertionError(
                f"{what} did not come true within {deadline} s; last seen: {last!r}"
            )
        await asyncio.sleep(0.02)


def eventually_sync(
    probe: Callable[[], T], deadline: float = 60.0, what: str = "the condition"
) -> T:
    """Return the first truthy result of *probe*, for tests without an event loop."""
    end = time.monotonic() + deadline
    while True:
        result = probe()
        if result:
            return result
        if time.monotonic() > end:
            raise AssertionError(
                f"{what} did not come true within {deadline} s; last seen: {result!r}"
            )
        time.sleep(0.02)
