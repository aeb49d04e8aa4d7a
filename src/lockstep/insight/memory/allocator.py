"""A model of PyTorch's caching allocator for CUDA: what it reserves for a run of allocations. Pure.

Sizes are rounded to 512 bytes. What is at most 1 MiB lies in segments of 2 MiB, what is below
10 MiB in segments of 20 MiB, larger ones in segments of their own, rounded to 2 MiB. The smallest
free block that is large enough is taken, and split where the rest is worth keeping; neighbours that
are free are joined. Segments are not given back, as none are before memory runs out.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

ROUND: Final = 512
SMALL: Final = 1 << 20
SMALL_SEGMENT: Final = 2 << 20
LARGE_SEGMENT: Final = 20 << 20
LEAST_LARGE: Final = 10 << 20
ROUND_LARGE: Final = 2 << 20

Event = tuple[int, int]
"""A storage's number, and its bytes where it comes, 0 where it goes."""


@dataclass(frozen=True, slots=True)
class Reserved:
    """Bytes at the peak: of the blocks that are in use, and of all segments."""

    allocated: int
    reserved: int


@dataclass(slots=True, eq=False)
class _Block:
    size: int
    small: bool
    free: bool = False
    before: _Block | None = None
    after: _Block | None = None


@dataclass
class _Pool:
    free: list[tuple[int, int, _Block]] = field(default_factory=list)

    def take(self, size: int) -> _Block | None:
        at = bisect_left(self.free, size, key=lambda one: one[0])
        return self.free.pop(at)[2] if at < len(self.free) else None

    def put(self, block: _Block) -> None:
        insort(self.free, (block.size, id(block), block), key=lambda one: one[:2])

    def drop(self, block: _Block) -> None:
        at = bisect_left(self.free, (block.size, id(block)), key=lambda one: one[:2])
        del self.free[at]


def replay(events: Iterable[Event]) -> Reserved:
    """Return what the allocator holds at the peak of *events*."""
    pools = {True: _Pool(), False: _Pool()}
    held: dict[int, _Block] = {}
    reserved = now = peak = 0
    for key, size in events:
        if size <= 0:
            block = held.pop(key, None)
            if block is not None:
                now -= block.size
                _give(pools[block.small], block)
            continue
        wanted = -(-size // ROUND) * ROUND
        small = wanted <= SMALL
        block = pools[small].take(wanted)
        if block is None:
            block = _Block(_segment(wanted), small)
            reserved += block.size
        _split(pools[small], block, wanted)
        block.free = False
        held[key] = block
        now += block.size
        peak = max(peak, now)
    return Reserved(peak, reserved)


def _segment(size: int) -> int:
    if size <= SMALL:
        return SMALL_SEGMENT
    if size < LEAST_LARGE:
        return LARGE_SEGMENT
    return -(-size // ROUND_LARGE) * ROUND_LARGE


def _split(pool: _Pool, block: _Block, size: int) -> None:
    rest = block.size - size
    if rest < ROUND or (not block.small and rest <= SMALL):
        return
    left = _Block(rest, block.small, True, block, block.after)
    if block.after is not None:
        block.after.before = left
    block.after, block.size = left, size
    pool.put(left)


def _give(pool: _Pool, block: _Block) -> None:
    for other in (block.before, block.after):
        if other is None or not other.free:
            continue
        pool.drop(other)
        block.size += other.size
        if other is block.before:
            block.before = other.before
            if other.before is not None:
                other.before.after = block
        else:
            block.after = other.after
            if other.after is not None:
                other.after.before = block
    block.free = True
    pool.put(block)
