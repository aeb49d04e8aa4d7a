"""A queue of keys to work on: coalescing, in order per key, with limited retries. Pure."""

from __future__ import annotations

import heapq
import random
from collections.abc import Hashable
from typing import Final, Generic, TypeVar

from lockstep.api.backoff import Backoff, Bucket

K = TypeVar("K", bound=Hashable)

RETRIES: Final = Backoff(initial=0.05, cap=60.0, jitter=0.2)
RETRY_RATE: Final = 50.0
RETRY_BURST: Final = 200.0


class WorkQueue(Generic[K]):
    """Keys that want attention; the time is handed in and never read.

    A key that is added several times before it is taken is worked on once. A key is never taken
    while it is being worked on: what is added meanwhile comes again afterwards, so the work on a
    key happens in order. Keys that are ready come out in the order in which they became so.
    """

    def __init__(
        self,
        backoff: Backoff = RETRIES,
        rng: random.Random | None = None,
        bucket: Bucket | None = None,
    ) -> None:
        self._backoff = backoff
        self._bucket = bucket or Bucket(RETRY_RATE, RETRY_BURST)
        """What all keys together may retry: when everything fails, the server needs a rest."""
        self._rng = rng or random.Random(0)  # noqa: S311 - jitter, not a secret
        self._ready: dict[K, float] = {}
        """Keys to be taken, in order, and since when they wait."""
        self._working: set[K] = set()
        self._again: dict[K, float] = {}
        """Keys that were added while they were worked on, and when."""
        self._due: dict[K, float] = {}
        """Keys that become ready later, and when: the earliest time that was asked for."""
        self._heap: list[tuple[float, int, K]] = []
        self._count = 0
        self._failures: dict[K, int] = {}

    def __len__(self) -> int:
        """Return how many keys are ready."""
        return len(self._ready)

    @property
    def idle(self) -> bool:
        """Whether nothing is ready, worked on, or to become ready later."""
        return not (self._ready or self._working or self._due)

    @property
    def working(self) -> int:
        """How many keys are being worked on."""
        return len(self._working)

    def add(self, key: K, now: float) -> None:
        """Ask for work on *key* as soon as possible."""
        self._due.pop(key, None)
        if key in self._working:
            self._again.setdefault(key, now)
        else:
            self._ready.setdefault(key, now)

    def add_after(self, key: K, delay: float, now: float) -> None:
        """Ask for work on *key* in *delay* seconds; an earlier wish for it stays."""
        if delay <= 0:
            self.add(key, now)
            return
        if key in self._ready or key in self._again:
            return
        due = now + delay
        if due < self._due.get(key, float("inf")):
            self._due[key] = due
            self._count += 1
            heapq.heappush(self._heap, (due, self._count, key))

    def retry(self, key: K, now: float) -> float:
        """Ask for *key* again after a failure, and return after which wait.

        The wait grows with each failure of the key, and with the failures of all keys when there
        are very many.
        """
        self._failures[key] = self._failures.get(key, 0) + 1
        own = self._backoff.delay(self._failures[key], self._rng)
        delay = max(own, self._bucket.reserve(now))
        self.add_after(key, delay, now)
        return delay

    def forget(self, key: K) -> None:
        """Note that the work on *key* succeeded: its next failure waits the shortest time."""
        self._failures.pop(key, None)

    def failures(self, key: K) -> int:
        """Return how often in a row the work on *key* has failed."""
        return self._failures.get(key, 0)

    def take(self, now: float) -> tuple[K, float] | None:
        """Take the next key and how long it has waited, or None when nothing is ready.

        ``done`` must follow for it.
        """
        self._wake(now)
        for key, since in self._ready.items():
            del self._ready[key]
            self._working.add(key)
            return key, max(0.0, now - since)
        return None

    def done(self, key: K, now: float) -> None:
        """End the work on *key*."""
        self._working.discard(key)
        if key in self._again:
            del self._again[key]
            self._ready.setdefault(key, now)

    def next_due(self) -> float | None:
        """Return when the next delayed key becomes ready."""
        while self._heap:
            due, _, key = self._heap[0]
            if self._due.get(key) == due:
                return due
            heapq.heappop(self._heap)
        return None

    def _wake(self, now: float) -> None:
        while (due := self.next_due()) is not None and due <= now:
            _, _, key = heapq.heappop(self._heap)
            self.add(key, due)
