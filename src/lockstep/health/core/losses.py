"""What loss and gradients say: no numbers, spikes, and one rank that computes something else."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from typing import Final

from lockstep.api.diagnosis import Diagnosis, Place
from lockstep.api.rendezvous import LossFigures
from lockstep.health.core.traces import ranges

REPLAY: Final = "pause_job: hold these ranks for a replay check"


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
