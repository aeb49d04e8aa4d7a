"""What the demo says, and how it fails."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

BEGAN = time.monotonic()


class Failed(Exception):
    """A step of the demo did not come out as it should."""


def say(text: str) -> None:
    """Print one line, with the seconds since the start."""
    print(f"[{time.monotonic() - BEGAN:5.1f}s] {text}", flush=True)


async def eventually(
    look: Callable[[], Awaitable[T | None]],
    what: str,
    *,
    within: float,
    progress: Callable[[], str] | None = None,
) -> T:
    """Return the first answer of *look*, saying every few seconds that the demo still waits.

    Raises:
        Failed: when there is none in time.
    """
    end = time.monotonic() + within
    said = time.monotonic()
    while True:
        answer = await look()
        if answer is not None:
            return answer
        now = time.monotonic()
        if now > end:
            raise Failed(f"{what}: not within {within:.0f} s")
        if now - said > 4:
            say(f"  waiting: {what}" + (f" ({progress()})" if progress else ""))
            said = now
        await asyncio.sleep(0.2)
