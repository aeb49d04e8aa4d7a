"""Which revision gets how much of the requests, and how many replicas each needs for it."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Split:
    """Per cent of the requests by revision, and which revision has been rolled out whole."""

    weights: dict[str, int]
    rolled_out: str


def split(latest: str, *, latest_ready: bool, rolled_out: str, percent: int | None) -> Split:
    """Return how requests are split.

    A revision gets requests only once it was ready; until then the one before keeps all of them.
    *percent* is what the latest gets beside the one that was *rolled_out* before.
    """
    if not rolled_out or rolled_out == latest:
        return Split({latest: 100}, latest if latest_ready else rolled_out)
    if not latest_ready:
        return Split({rolled_out: 100}, rolled_out)
    if percent is None or percent == 100:
        return Split({latest: 100}, latest)
    weights = {latest: percent, rolled_out: 100 - percent}
    return Split({name: weight for name, weight in weights.items() if weight}, rolled_out)


def replicas(wanted: int, weights: dict[str, int]) -> dict[str, int]:
    """Return how many of *wanted* replicas each revision gets, by its weight and at least one."""
    if wanted == 0:
        return dict.fromkeys(weights, 0)
    return {name: max(1, math.ceil(wanted * weight / 100)) for name, weight in weights.items()}
