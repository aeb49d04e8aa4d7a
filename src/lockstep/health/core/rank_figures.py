"""What a launcher makes of a rank's steps: how long it was busy in each, how its loss goes.

Launchers do this beside the ranks: it imports the standard library alone, and Python 3.9 runs it.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import islice
from statistics import median
from typing import Any, Final

BUSY: Final = 20
"""Steps of which it is told how long the rank was busy."""
FEWEST: Final = 16
SPIKE: Final = 8.0
"""Deviations above the median, in medians of deviations, that make a spike."""
LASTING: Final = 3
"""Steps for which a spike must last; a single bad batch is none."""
NONE: Final = -math.inf
"""In place of a loss that is not known."""
_NO_WORK: Final = ("broadcast", "barrier")
"""Collectives that say nothing of the work before them: buffers are sent as a step begins."""


def ends(last: float, seconds: Sequence[float]) -> list[float]:
    """Return when steps ended, the first of them first, from the end of the last and lengths."""
    found = [last]
    for one in reversed(seconds):
        found.append(found[-1] - one)
    return found[::-1]


def created(dump: object, offset: float) -> list[float]:
    """Return when a rank called its collectives, in order, on the monotonic clock.

    *dump* is what the flight recorder tells, *offset* the wall clock less the monotonic one.
    """
    entries = dump.get("entries", ()) if isinstance(dump, dict) else ()
    found = [
        one["time_created_ns"] / 1e9 - offset
        for one in entries
        if isinstance(one, dict)
        and isinstance(one.get("time_created_ns"), int)
        and not one.get("is_p2p")
        and not any(word in str(one.get("profiling_name", "")) for word in _NO_WORK)
    ]
    return sorted(found)


def busy(step_ends: Sequence[float], calls: Sequence[float]) -> list[float]:
    """Return the seconds that the rank was busy in each of its last steps.

    That is the time from the end of the step before, which comes to all ranks at once, until the
    rank called its first collective: before that it waits for no other.
    """
    found = []
    for begin, end in zip(step_ends, islice(step_ends, 1, None)):  # noqa: B905 - Python 3.9
        at = bisect_right(calls, begin)
        if at < len(calls) and calls[at] <= end:
            found.append(calls[at] - begin)
    return found[-BUSY:]


def spread(usual: Iterable[float]) -> tuple[float, float | None]:
    """Return the median of losses and how far they lie from it; None where there are too few."""
    known = list(usual)
    if len(known) < FEWEST:
        return 0.0, None
    middle = median(known)
    about = median(abs(one - middle) for one in known)
    return middle, max(1.4826 * about, 1e-3 * abs(middle), 1e-9)


def losses(first: int, values: Sequence[float]) -> dict[str, Any]:
    """Return what the losses of the steps from *first* on say, as a ``LossFigures``."""
    said: dict[str, Any] = {}
    usual: list[float] = []
    high = 0
    for number, loss in enumerate(values, first):
        if loss == NONE:
            continue
        if not math.isfinite(loss):
            said.setdefault("bad", number)
            continue
        middle, about = spread(usual)
        if about is not None and loss > middle + SPIKE * about:
            high += 1
            if high == LASTING:
                said["high"], said["usual"] = number, middle
        else:
            high = 0
            said.pop("high", None)
            usual.append(loss)
        said["last"] = loss
    return said
