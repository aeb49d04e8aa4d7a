"""HAMi's published law for shares of a card's time, written anew and run on a clock of its own.

A launch takes as many tokens as its grid has blocks, whatever its kernel's length. Below 0 it looks
again every 10 ms. Every 120 ms a watcher compares the card's use in the last second with the share,
moves its step, and adds the step to the tokens (HAMi-core, ``rate_limiter`` and ``delta``).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Final

SMS: Final = 132
THREADS: Final = 2048
MOST: Final = SMS * THREADS * 32
"""Tokens that the bucket of an H200 holds."""
CYCLE, WATCH, WINDOW = 10_000_000, 120_000_000, 1_000_000_000
"""Nanoseconds between two looks of a launch, of the watcher, and for which it asks."""
QUEUE: Final = 64
"""Launches in flight before the program waits for the oldest."""


@dataclass
class Card:
    """A card that works off launches in their order."""

    spans: deque[tuple[int, int]] = field(default_factory=deque)
    until: int = 0
    given: int = 0
    """Nanoseconds of all work that it took in."""

    def launch(self, now: int, length: int) -> int:
        """Take work in; return when it is complete."""
        start = max(now, self.until)
        self.until = start + length
        self.given += length
        if self.spans and self.spans[-1][1] == start:
            start, _ = self.spans.pop()
        self.spans.append((start, self.until))
        return self.until

    def used(self, since: int, now: int) -> int:
        """Return the nanoseconds of the time since then in which the card worked."""
        while self.spans and self.spans[0][1] <= since:
            self.spans.popleft()
        return sum(max(0, min(to, now) - max(start, since)) for start, to in self.spans)


def step(share: int, cap: int, used: int) -> int:
    """Return the watcher's next step for a cap and a use in hundredths."""
    off = max(5, abs(cap - used))
    move = SMS * SMS * THREADS * off // 2560
    if off > cap // 2:
        move = move * off * 2 // (cap + 1)
    return min(MOST, share + move) if used <= cap else max(0, share - move)


def percent(cap: int, length: int, seconds: float) -> float:
    """Return the hundredths of the first *seconds* that a share at *cap* uses.

    Its program launches kernels of one block for each SM and of *length* nanoseconds, as fast as
    it may.
    """
    card, now, end = Card(), 0, int(seconds * 1e9)
    tokens, share, watched = 0, 0, 0
    flying: deque[int] = deque()
    while now < end:
        while watched + WATCH <= now:
            watched += WATCH
            used = 100 * card.used(watched - WINDOW, watched) // WINDOW
            share = step(share, cap, used)
            tokens = min(MOST, tokens + share)
        if tokens < 0:
            now += CYCLE
            continue
        while len(flying) >= QUEUE:
            now = max(now, flying.popleft())
        tokens -= SMS
        flying.append(card.launch(now, length))
        now += 1000
    return 100 * (card.given - max(0, card.until - end)) / end
