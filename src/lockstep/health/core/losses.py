"""What loss and gradients say: no numbers, spikes, and one rank that computes something else."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from statistics import median
from typing import Final

from lockstep.api.diagnosis import Diagnosis, Place
from lockstep.api.worlds import LossFigures
from lockstep.health.core.rank_figures import LASTING, SPIKE, spread
from lockstep.health.core.traces import ranges

WINDOW: Final = 64
REPLAY: Final = "pause_job: hold these ranks for a replay check"


class Losses:
    """Looks at the losses of one job, step after step."""

    def __init__(self) -> None:
        self._usual: deque[float] = deque(maxlen=WINDOW)
        self._high = 0

    def step(self, number: int, losses: Mapping[int, float]) -> Diagnosis | None:
        """Take the loss, or the gradients' norm, of each rank; return what is wrong with them.

        A number that is none comes to all ranks with the next all-reduce: the first step tells
        whose it was.
        """
        bad = sorted(rank for rank, loss in losses.items() if not math.isfinite(loss))
        if bad:
            return _no_number(number, bad, len(losses))
        if not losses:
            return None
        loss = median(losses.values())
        usual, about = spread(self._usual)
        if about is not None and loss > usual + SPIKE * about:
            self._high += 1
            return _spike(number, loss, usual) if self._high >= LASTING else None
        self._high = 0
        self._usual.append(loss)
        return None


def reported(told: Mapping[int, LossFigures], steps: Mapping[int, int]) -> Diagnosis | None:
    """Return what the ranks' own figures say together; *steps* are how many each has done.

    The first step without a number is judged once all ranks have come to it. A spike is one where
    most ranks have it: the loss of one rank alone rises with its share of the data.
    """
    if not told:
        return None
    bad = [one.bad for one in told.values() if one.bad is not None]
    if bad and min(steps.values()) >= min(bad):
        first = min(bad)
        odd = sorted(rank for rank, one in told.items() if one.bad == first)
        return _no_number(first, odd, len(told))
    high = [one for one in told.values() if one.high is not None]
    if len(high) * 2 <= len(told):
        return None
    last = median(one.last or 0.0 for one in high)
    usual = median(one.usual or 0.0 for one in high)
    return _spike(min(one.high or 0 for one in high), last, usual)


def _no_number(number: int, bad: list[int], ranks: int) -> Diagnosis:
    if len(bad) == 1 and ranks > 2:
        return Diagnosis(
            class_="hardware",
            cause=f"the loss of rank {bad[0]} alone is no number: it may compute wrongly",
            action=REPLAY,
            place=Place(ranks=bad),
            confidence=0.6,
            evidence=[f"step {number}: rank {bad[0]} of {ranks}"],
        )
    return Diagnosis(
        class_="user",
        cause="the loss is no number any more",
        action="stop_and_tell_user",
        place=Place(ranks=bad[:64]),
        confidence=0.85,
        evidence=[f"step {number}: ranks {ranges(bad)} of {ranks}"],
    )


def _spike(number: int, loss: float, usual: float) -> Diagnosis:
    return Diagnosis(
        class_="user",
        cause=f"the loss rose to {loss:.4g} from {usual:.4g} and stays there",
        action="observe",
        confidence=0.6,
        evidence=[f"step {number}"],
    )


def differing(sums: Mapping[int, int], step: int) -> Diagnosis | None:
    """Return a verdict on checksums of what should be the same on all ranks; None where it is.

    Where most agree the others are suspected, to be held for a replay check.
    """
    counts: dict[int, int] = {}
    for one in sums.values():
        counts[one] = counts.get(one, 0) + 1
    if len(counts) < 2:
        return None
    usual = max(counts, key=lambda one: counts[one])
    odd = sorted(rank for rank, one in sums.items() if one != usual)
    most = counts[usual] > len(sums) / 2
    return Diagnosis(
        class_="hardware" if most else "unknown",
        cause=f"the state of rank {ranges(odd)} differs from that of the others"
        if most
        else "cannot tell: ranks hold different states; missing: a majority that agrees",
        action=REPLAY if most else "observe",
        place=Place(ranks=odd[:64] if most else []),
        confidence=0.75 if most else 0.0,
        evidence=[f"step {step}: {counts[usual]} of {len(sums)} checksums agree"],
    )
