"""Ranks that are slower than the others, step after step, and what in them is slow.

In step every rank takes as long as the slowest. What differs is when a rank arrives: the seconds
that it was busy itself, before it waited for the others. These are held against the median of all
ranks, and the spread against the median of deviations, so that a few outliers move neither.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from lockstep.api.diagnosis import Diagnosis, Place

WINDOW: Final = 20
"""Steps over which a rank must be slow."""
SLOW: Final = 0.05
"""Excess over the median of all ranks, as a part of it, from which a rank is slow."""
SURE: Final = 6.0
"""Excess in standard errors of a window's median from which it is no accident."""
FEWEST: Final = 3
_NORMAL: Final = 1.4826
_OF_MEDIAN: Final = 1.2533
"""Standard error of a median against that of a mean."""

Part = Literal["device", "host", "link", "storage"]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Slow:
    """A rank that is slow: by which part of a step, and how sure that is in standard errors."""

    rank: int
    excess: float
    errors: float


def slow(ratios: Floats) -> list[Slow]:
    """Return the slow ranks of a window of steps, the slowest first.

    *ratios* has a row a step and a column a rank: seconds busy over the median of the step.
    """
    known = np.isfinite(ratios).sum(axis=0) >= len(ratios) // 2
    if known.sum() < FEWEST:
        return []
    middles = np.where(known, np.nanmedian(np.where(known, ratios, 1.0), axis=0), np.nan)
    spread = _NORMAL * np.nanmedian(np.abs(ratios - middles))
    between = _NORMAL * np.nanmedian(np.abs(middles - np.nanmedian(middles)))
    # Steps that are not independent show in how far the ranks lie apart.
    error = max(_OF_MEDIAN * spread / np.sqrt(len(ratios)), between) + 1e-6
    excess = middles - np.nanmedian(middles)
    found = np.flatnonzero((excess >= SLOW) & (excess >= SURE * error))
    order = found[np.argsort(-excess[found])]
    return [Slow(int(r), float(excess[r]), float(excess[r] / error)) for r in order]


@dataclass(frozen=True, slots=True)
class Known:
    """What else is known of a slow rank: parts of a step against the median of all ranks."""

    node: str = ""
    data: float = 1.0
    """Seconds that it waited for data, over those of the others."""
    sending: float = 1.0
    throttled: str = ""
    """Why its GPU runs slower than it could, as NVML tells it."""
    neighbours: bool = False
    """Whether other ranks of its node are slow too."""


def part(known: Known) -> Part:
    """Return which part of a slow rank is slow."""
    if known.data >= 1.5 and known.data >= known.sending:
        return "storage"
    if known.sending >= 1.5:
        return "link"
    if known.neighbours and not known.throttled:
        return "host"
    return "device"


def verdict(one: Slow, known: Mapping[int, Known]) -> Diagnosis:
    """Return the diagnosis of a slow rank."""
    about = known.get(one.rank, Known())
    what = part(about)
    classes = {"storage": "storage", "link": "network", "host": "hardware", "device": "hardware"}
    words = {
        "storage": "it waits for data",
        "link": "what it sends takes long",
        "host": "and so are others of its node",
        "device": f"its GPU is held back: {about.throttled}"
        if about.throttled
        else "its own work is",
    }
    isolates = what in ("device", "host") and one.excess >= 2 * SLOW
    return Diagnosis(
        class_=classes[what],  # type: ignore[arg-type]
        cause=f"rank {one.rank} is {one.excess:.0%} slower than the others; {words[what]}",
        action="isolate_node" if isolates else "observe",
        place=Place(nodes=[about.node] if about.node else [], ranks=[one.rank]),
        confidence=round(min(0.95, 0.5 + one.errors / 40), 2),
        evidence=[
            f"the median of {WINDOW} steps lies {one.errors:.0f} standard errors above that of all"
        ],
    )
