"""How long to wait before trying again, as functions of the count of failures."""

from __future__ import annotations

import random
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Backoff:
    """Waits that double from *initial* to *cap* seconds.

    A part *jitter* of each wait is random: 1 spreads the waits of many clients over the whole
    range ("full jitter"), a smaller part keeps a floor under each wait.
    """

    initial: float = 0.2
    cap: float = 30.0
    jitter: float = 1.0

    def delay(self, failures: int, rng: random.Random) -> float:
        """Return the wait after the *failures*-th failure in a row, counted from 1."""
        return self.ceiling(failures) * (1.0 - self.jitter * rng.random())

    def ceiling(self, failures: int) -> float:
        """Return the longest wait after the *failures*-th failure in a row: for pure cores."""
        return min(self.cap, self.initial * 2.0 ** min(failures - 1, 60))


@dataclass(slots=True)
class Pauses:
    """The waits of one thing that is tried again and again."""

    backoff: Backoff
    rng: random.Random = field(default_factory=random.Random)
    failures: int = 0

    def failed(self) -> float:
        """Count a failure and return how long to wait now."""
        self.failures += 1
        return self.backoff.delay(self.failures, self.rng)

    def worked(self) -> None:
        """Begin anew at the shortest wait."""
        self.failures = 0


@dataclass(slots=True)
class Bucket:
    """Tokens that come at *rate* a second, up to *burst*; the time is handed in."""

    rate: float
    burst: float
    _tokens: float | None = None
    _since: float = 0.0

    def reserve(self, now: float) -> float:
        """Take a token, if need be one that is still to come, and return how long until then."""
        before = self.burst if self._tokens is None else self._tokens
        elapsed = 0.0 if self._tokens is None else max(0.0, now - self._since)
        self._tokens = min(self.burst, before + elapsed * self.rate) - 1.0
        self._since = now
        return max(0.0, -self._tokens / self.rate)
