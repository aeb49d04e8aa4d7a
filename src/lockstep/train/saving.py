"""When a launcher saves its ranks' states, and what it tells of that.

All ranks must save the same steps, and launchers do not talk to each other while ranks run. So a
launcher saves at multiples of a power of two, the least that takes the wanted time: two launchers
that measure a little differently choose the same number, or one the double of the other's, and
every step of the double is one of both.
"""

from __future__ import annotations

import math
import queue
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lockstep.train.memory import Memory
from lockstep.train.ranks import Seat
from lockstep.train.store import Held, NotStored, Saved, Store, take

Json = dict[str, Any]

INTERVAL = 600.0
"""Seconds between two saves where nobody says."""
_LOOK = 0.5
_LEAST_STEPS, _LEAST_SECONDS = 3, 1.0
"""What the rate of steps is measured over at least."""


def steps_between(rate: float, interval: float) -> int:
    """Return how many steps lie between two saves: a power of two that takes *interval* seconds.

    *rate* is in steps a second.
    """
    return 1 << max(0, math.ceil(math.log2(max(1e-9, rate * interval))))


class Saving:
    """Saves what the ranks of a pod hold, where the job has a directory for that."""

    def __init__(self, env: Mapping[str, str], memory: Memory) -> None:
        directory = env.get("LOCKSTEP_CHECKPOINTS", "")
        self.store = Store(Path(directory)) if directory else None
        self._interval = float(env.get("LOCKSTEP_SAVE_SECONDS", "") or INTERVAL)
        self._memory = memory
        self._seat: Seat | None = None
        self._waiting: queue.Queue[tuple[int, Held]] = queue.Queue()
        self._began: tuple[float, int] | None = None

    def seated(self, seat: Seat) -> None:
        """Note which ranks the pod has from now on; their steps are counted anew."""
        self._seat, self._began = seat, None

    def start(self) -> None:
        """Begin to pace the saves, in threads of their own."""
        if self.store is not None:
            for target in (self._pace, self._write):
                threading.Thread(target=target, daemon=True).start()

    def save(self, local: int, step: int) -> None:
        """Take a copy of *step* of a rank, to be written; the rank waits for the copy alone.

        While earlier ones are still being written, none is taken: the disk is too slow for more.
        """
        if self.store is None or self._seat is None:
            return
        if self._waiting.qsize() >= self._seat.local:
            self.store.problem = f"step {step} is not saved: the one before is still being written"
            return
        for segment, _ in self._memory.newest(local)[:1]:
            held = take(segment, step)
            if held is not None:
                self._waiting.put((local, held))

    def save_all(self) -> None:
        """Save every whole copy that the pod holds, before it ends."""
        if self.store is None or self._seat is None:
            return
        self._waiting.join()
        for local in range(self._seat.local):
            # The older one first: the newest stands first in the index.
            for segment, whole in reversed(self._memory.newest(local)):
                self.store.save(self._seat.first + local, self._seat.size, segment, whole)

    def load(self, local: int, step: int, seat: Seat) -> None:
        """Bring a saved copy of *step* into the memory of a rank.

        Raises:
            NotStored: when there is none that is whole.
            TooLittleMemory: when it does not fit.
        """
        if self.store is None:
            raise NotStored("the job has no directory for checkpoints")

        def make(slot_bytes: int, layout: int) -> Any:
            return self._memory.segment(local, slot_bytes, layout)

        self.store.load(seat.first + local, seat.size, step, make)

    def stored(self, seat: Seat) -> list[Json]:
        """Return which steps of the pod's ranks are saved, as it is reported."""
        if self.store is None:
            return []
        return [
            {"local": local, "step": step}
            for local in range(seat.local)
            for step in self.store.steps(seat.first + local, seat.size)
        ]

    def told(self) -> Json:
        """Return what is reported of the saves while ranks run."""
        if self.store is None or self._seat is None:
            return {}
        mine = range(self._seat.first, self._seat.first + self._seat.local)
        saved: list[Saved] = [self.store.saved[r] for r in mine if r in self.store.saved]
        found: Json = {}
        if len(saved) == len(mine):
            least = min(saved, key=lambda one: one.step)
            found["saved"] = {"step": least.step, "at": least.at}
        if self.store.problem:
            found["trouble"] = self.store.problem
        return found

    def _pace(self) -> None:
        while True:
            time.sleep(_LOOK)
            step, now = self._memory.progress(), time.monotonic()
            if step is None:
                continue
            if self._began is None:
                self._began = now, step
                continue
            seconds, steps = now - self._began[0], step - self._began[1]
            if seconds >= _LEAST_SECONDS and steps >= _LEAST_STEPS:
                self._memory.save_every(steps_between(steps / seconds, self._interval))
            elif seconds >= self._interval and steps > 0:
                self._memory.save_every(1)

    def _write(self) -> None:
        while True:
            local, held = self._waiting.get()
            seat = self._seat
            if self.store is not None and seat is not None:
                self.store.write(seat.first + local, seat.size, held)
            self._waiting.task_done()
