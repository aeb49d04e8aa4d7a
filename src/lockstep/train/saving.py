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

from lockstep.train import storage
from lockstep.train.catalogue import Catalogue, NotStored
from lockstep.train.held import Held, take
from lockstep.train.memory import Memory
from lockstep.train.persister import Persister
from lockstep.train.ranks import Seat
from lockstep.train.remote import Remote
from lockstep.train.state import Json

INTERVAL = 600.0
"""Seconds between two saves before it is known what one costs."""
SHORTEST, LONGEST = 60.0, 3600.0
NODE_HOURS = 6300.0
"""Hours between two failures of a node of 8 GPUs: Llama 3's 419 in 54 days on 2,048 of them."""
_LOOK = 0.5
_LEAST_STEPS, _LEAST_SECONDS = 3, 1.0
"""What the rate of steps is measured over at least."""


def steps_between(rate: float, interval: float) -> int:
    """Return how many steps lie between two saves: a power of two that takes *interval* seconds.

    *rate* is in steps a second.
    """
    return 1 << max(0, math.ceil(math.log2(max(1e-9, rate * interval))))


def best_interval(cost: float, nodes: int, seconds: float, failures: int) -> float:
    """Return the seconds between saves at which least time is lost, by Young and Daly.

    A save takes *cost* seconds of the ranks' time. How often a job fails is taken from what nodes
    do usually, and corrected by its own *failures* in so many *seconds*.
    """
    usual = NODE_HOURS * 3600 / max(1, nodes)
    between = (usual + seconds) / (1 + failures)
    return min(LONGEST, max(SHORTEST, math.sqrt(2 * cost * between)))


class Saving:
    """Saves what the ranks of a pod hold, where the job has a directory for that."""

    def __init__(self, env: Mapping[str, str], memory: Memory, python: str = "") -> None:
        directory = env.get("LOCKSTEP_CHECKPOINTS", "")
        self.books: Catalogue | Remote | None = None
        if directory and storage.is_remote(directory):
            self.books = Remote(directory.rstrip("/"), python)
        elif directory:
            self.books = Catalogue(Path(directory))
        self.problem = ""
        """Why the last save failed; empty when it did not."""
        self.replicated = self.shared = False
        """Whether all ranks hold the same, but for what is spread over them."""
        self._persister = Persister()
        self._stated = float(env.get("LOCKSTEP_SAVE_SECONDS", "") or 0)
        self._cost = 0.0
        """Seconds that ranks waited for the last copy."""
        self._since, self._restarts = time.monotonic(), (0, 0)
        self._memory = memory
        self._seat: Seat | None = None
        self._waiting: queue.Queue[tuple[int, Held]] = queue.Queue()
        self._began: tuple[float, int] | None = None
        self._at_the_end: set[tuple[int, int]] = set()
        """Local ranks and steps that are saved because the pod is told to end."""

    def seated(self, seat: Seat) -> None:
        """Note which ranks the pod has from now on; their steps are counted anew."""
        self._seat, self._began = seat, None

    @property
    def interval(self) -> float:
        """Seconds between two saves: as stated, else by Young and Daly."""
        if self._stated or not self._cost or self._seat is None:
            return self._stated or INTERVAL
        seconds = time.monotonic() - self._since
        first, last = self._restarts
        return best_interval(self._cost, self._seat.nodes, seconds, last - first)

    def restarted(self, restarts: int) -> None:
        """Note how often the job has restarted."""
        first = restarts if self._seat is None else self._restarts[0]
        self._restarts = first, restarts

    def start(self) -> None:
        """Begin to pace the saves, in threads of their own."""
        if self.books is not None:
            for target in (self._pace, self._write):
                threading.Thread(target=target, daemon=True).start()

    def save(self, local: int, step: int) -> None:
        """Take a copy of *step* of a rank, to be written; the rank waits for the copy alone.

        While earlier ones are still being written, none is taken: the disk is too slow for more.
        """
        if self.books is None or self._seat is None:
            return
        if self._waiting.qsize() >= self._seat.local:
            self.problem = f"step {step} is not saved: the one before is still being written"
            return
        began = time.monotonic()
        for segment, _ in self._memory.newest(local)[:1]:
            held = take(segment, step)
            self._cost = time.monotonic() - began
            if held is not None:
                self._waiting.put((local, held))

    def save_all(self) -> None:
        """Save every whole copy that the pod holds, before it ends; again what came since."""
        if self.books is None or self._seat is None:
            return
        self._waiting.join()
        for local in range(self._seat.local):
            # The older one first: the newest is what the job goes on from.
            for segment, whole in reversed(self._memory.newest(local)):
                if (local, whole.step) in self._at_the_end:
                    continue
                held = Held.take(segment, whole)
                if held is not None:
                    self._at_the_end.add((local, whole.step))
                    self._hand_over(self.books, self._seat, local, held)

    def find(self, step: int) -> storage.Place | str:
        """Return the directory of the checkpoint after *step* steps.

        Raises:
            NotStored: when there is none.
        """
        if self.books is None:
            raise NotStored("the job has no directory for checkpoints")
        return self.books.find(step)

    def stored(self) -> list[Json]:
        """Return which checkpoints are whole, as it is reported."""
        if isinstance(self.books, Remote):
            self.books.look()
            self.problem = self.books.problem
        entries = self.books.entries() if self.books is not None else []
        return [{"step": one.step, "size": one.size, "free": one.free} for one in entries]

    def told(self) -> Json:
        """Return what is reported of the saves while ranks run."""
        if self.books is None:
            return {}
        newest = self.books.entries()[:1]
        found: Json = {}
        if newest:
            found["saved"] = {"step": newest[0].step, "at": newest[0].at}
        if self.problem:
            found["trouble"] = self.problem
        return found

    def _hand_over(self, books: Catalogue | Remote, seat: Seat, local: int, held: Held) -> None:
        request = {
            "directory": str(books.directory),
            "step": held.step,
            "generation": held.generation,
            "lengths": held.lengths,
            "rank": seat.first + local,
            "size": seat.size,
            "replicated": self.replicated,
            "shared": self.shared,
        }
        try:
            self.problem = self._persister.write(self._memory.python, request, held.file)
        finally:
            held.close()
        if isinstance(books, Remote):
            books.awaits(held.step)

    def _pace(self) -> None:
        while True:
            time.sleep(_LOOK)
            self._persister.warm(self._memory.python)
            step, now = self._memory.progress(), time.monotonic()
            if isinstance(self.books, Remote):
                self.books.look_again(now)
            if step is None:
                continue
            interval = self.interval
            if self._began is None:
                self._began = now, step
                continue
            seconds, steps = now - self._began[0], step - self._began[1]
            if seconds >= _LEAST_SECONDS and steps >= _LEAST_STEPS:
                self._memory.save_every(steps_between(steps / seconds, interval))
            elif seconds >= interval and steps > 0:
                self._memory.save_every(1)

    def _write(self) -> None:
        while True:
            local, held = self._waiting.get()
            books, seat = self.books, self._seat
            if books is not None and seat is not None:
                self._hand_over(books, seat, local, held)
            self._waiting.task_done()
