"""Who gets room in a cache, and what goes for it.

Training reads everything once an epoch, so what was read last is needed last: the rule that fits
most programs (evict the least recently used) then evicts each file just before it is read. Here
nothing goes for a newcomer that is needed no sooner. Without a known order that means: the cache
keeps what fits, and its hits are its share of the dataset.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
NEVER: Final = 1 << 60
"""When a file is needed that no known order names."""


@dataclass(slots=True)
class Account:
    """The bytes of one dataset on one tier."""

    limit: int
    """Bytes that may lie there: the high mark."""
    low: int
    """Bytes to which eviction goes down once the limit is passed."""
    used: int = 0
    reserved: int = 0
    """Bytes of what is on its way."""
    together: Callable[[int], bool] | None = None
    """Whether so many bytes more fit a quota that several datasets have together."""

    def reserve(self, need: int) -> bool:
        """Set *need* bytes aside, if they fit."""
        if self.used + self.reserved + need > self.limit:
            return False
        if self.together is not None and not self.together(need):
            return False
        self.reserved += need
        return True

    def settle(self, reserved: int, used: int) -> None:
        """Turn what was *reserved* into what is really *used*; 0 when nothing came."""
        self.reserved -= reserved
        self.used += used

    def free(self, size: int) -> None:
        """Take note that *size* bytes are gone."""
        self.used -= size

    @property
    def surplus(self) -> int:
        """Return how many bytes have to go: down to the low mark, once the limit is passed."""
        return self.used - self.low if self.used > self.limit else 0


def victims(
    needed: IntArray, held: IntArray, need: int, before: int, fixed: npt.NDArray[np.bool_] | None
) -> list[int]:
    """Return the files to evict for *need* bytes; none when no eviction makes enough room.

    *needed* says when each file is read next, *held* how many bytes of it lie here. What is needed
    last goes first, and only what is needed later than *before*; *fixed* files stay.
    """
    here = held > 0
    if fixed is not None:
        here &= ~fixed
    # Of what is needed alike the end of the list goes, so that the same files stay.
    candidates = np.flatnonzero(here & (needed > before))[::-1]
    if not len(candidates):
        return []
    order = candidates[np.argsort(-needed[candidates], kind="stable")]
    enough = int(np.searchsorted(np.cumsum(held[order]), need)) + 1
    if enough > len(order):
        return []
    found: list[int] = order[:enough].tolist()
    return found
