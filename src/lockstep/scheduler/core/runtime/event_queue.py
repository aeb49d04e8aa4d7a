"""What is due when: the events of a clock that jumps from one to the next."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from heapq import heappop, heappush
from itertools import count
from math import inf
from typing import Any, NamedTuple


class _Entry(NamedTuple):
    """Something planned; what is due at one time happens in the order in which it was planned."""

    at: float
    number: int
    key: Hashable
    act: Callable[..., None]
    args: tuple[Any, ...]


class EventQueue:
    """Events by time. For a key there is one at most: planning another replaces it."""

    def __init__(self) -> None:
        self._heap: list[_Entry] = []
        self._numbers = count()
        self._valid: dict[Hashable, int] = {}
        """By key, the number of the entry that counts for it."""

    @property
    def next(self) -> float | None:
        """Return when the next thing is due; None where nothing is."""
        self._skip()
        return self._heap[0].at if self._heap else None

    def plan(self, at: float, act: Callable[..., None], *args: Any) -> None:
        """Plan to call *act* with *args* at some time; never, where that is infinite."""
        if at != inf:
            heappush(self._heap, _Entry(at, next(self._numbers), None, act, args))

    def replace(self, key: Hashable, at: float, act: Callable[..., None], *args: Any) -> None:
        """Plan what is next for *key*, instead of what was."""
        self.drop(key)
        if at != inf:
            number = self._valid[key] = next(self._numbers)
            heappush(self._heap, _Entry(at, number, key, act, args))

    def drop(self, key: Hashable) -> None:
        """Let what is planned for *key* not happen."""
        self._valid.pop(key, None)

    def take(self, until: float) -> _Entry | None:
        """Take out the next entry if it is due by *until*."""
        self._skip()
        if not self._heap or self._heap[0].at > until:
            return None
        entry = heappop(self._heap)
        if entry.key is not None:
            del self._valid[entry.key]
        return entry

    def _skip(self) -> None:
        """Drop what was replaced since from the front, so that no time is played for nothing."""
        heap, valid = self._heap, self._valid
        while heap and heap[0].key is not None and valid.get(heap[0].key) != heap[0].number:
            heappop(heap)
