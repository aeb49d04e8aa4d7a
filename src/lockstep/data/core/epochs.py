"""In which order files are read: told by a sampler, or seen before."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from lockstep.data.core.room import NEVER

IntArray = npt.NDArray[np.int64]
MATCHES: Final = 8
"""Files in a row that must come as in the pass before until that order is believed."""


def permutation(seed: int, epoch: int, count: int) -> IntArray:
    """Return the order of *count* samples in *epoch*; the same on every machine."""
    drawn = np.random.Generator(np.random.Philox(key=[seed & (1 << 64) - 1, epoch]))
    return drawn.permutation(count).astype(np.int64)


def share(order: IntArray, start: int, rank: int, world: int) -> IntArray:
    """Return what *rank* of *world* reads of *order*, of which *start* samples were read before."""
    return order[start + rank :: world]


@dataclass
class Order:
    """Files in the order in which one reader takes them, and how far it is."""

    files: IntArray
    position: int = 0
    following: IntArray | None = None
    """The order after that, as of the next epoch."""
    _places: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._places = {int(one): at for at, one in enumerate(self.files.tolist())}

    def read(self, file: int) -> bool:
        """Take note that *file* is read; tell whether the order names it."""
        at = self._places.get(file)
        if at is not None and at >= self.position:
            self.position = at + 1
        return at is not None

    def ahead(self) -> Iterator[int]:
        """Yield the files that come next."""
        yield from self.files[self.position :].tolist()
        if self.following is not None:
            yield from self.following.tolist()

    def needed(self, into: IntArray) -> None:
        """Lower *into*, when each file is needed, by what this order says."""
        rest = self.files[self.position :]
        if self.following is not None:
            later = len(rest) + np.arange(len(self.following), dtype=np.int64)
            np.minimum.at(into, self.following, later)
        np.minimum.at(into, rest, np.arange(len(rest), dtype=np.int64))


class Passes:
    """Finds out the order by itself: that of the pass before, once it has come true for a while."""

    def __init__(self) -> None:
        self._now: dict[int, None] = {}
        self._before: list[int] = []
        self._places: dict[int, int] = {}
        self._at = -1
        self._matched = 0

    def read(self, file: int) -> None:
        """Take note that *file* is read; the second time begins another pass."""
        if file in self._now:
            if next(reversed(self._now)) == file:
                return
            self._before = list(self._now)
            self._places = {one: at for at, one in enumerate(self._before)}
            self._now = {}
            self._at, self._matched = -1, 0
        self._now[file] = None
        at = self._places.get(file, -2)
        self._matched = self._matched + 1 if at == self._at + 1 else 0
        self._at = at if at >= 0 else self._at

    @property
    def believed(self) -> bool:
        """Whether this pass goes as the one before did."""
        return self._matched >= MATCHES

    def ahead(self) -> Iterator[int]:
        """Yield the files that come next; none while the order is not believed."""
        if self.believed:
            yield from self._before[self._at + 1 :]
            yield from self._before[: self._at + 1]

    def needed(self, into: IntArray) -> None:
        """Lower *into* by what the pass before says, while it is believed."""
        if self.believed:
            files = np.fromiter(self.ahead(), np.int64)
            np.minimum.at(into, files, np.arange(len(files), dtype=np.int64))


class Expected:
    """What the readers of one version are expected to read."""

    def __init__(self, files: int) -> None:
        self._files = files
        self._orders: dict[str, Order] = {}
        self._passes = Passes()

    @property
    def known(self) -> bool:
        """Whether any order is."""
        return bool(self._orders) or self._passes.believed

    def publish(self, reader: str, order: Order) -> None:
        """Expect of *reader* what *order* says, and nothing else any more."""
        self._orders[reader] = order

    def withdraw(self, reader: str) -> None:
        """Expect nothing of *reader* any more."""
        self._orders.pop(reader, None)

    def read(self, file: int) -> None:
        """Take note that *file* is read."""
        named = [order.read(file) for order in self._orders.values()]
        if not any(named):
            self._passes.read(file)

    def needed(self) -> IntArray:
        """Return when each file is needed: reads from now, ``NEVER`` where no order names it."""
        found = np.full(self._files, NEVER, np.int64)
        for order in self._orders.values():
            order.needed(found)
        if not self._orders:
            self._passes.needed(found)
        return found

    def ahead(self) -> Iterator[int]:
        """Yield the files to fetch ahead, those of all readers in turn."""
        if not self._orders:
            yield from self._passes.ahead()
            return
        turns = [order.ahead() for order in self._orders.values()]
        while turns:
            for one in list(turns):
                file = next(one, None)
                if file is None:
                    turns.remove(one)
                else:
                    yield file
