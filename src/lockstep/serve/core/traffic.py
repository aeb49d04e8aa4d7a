"""Which revision gets how much of the requests, and how many replicas each needs for it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Split:
    """Per cent of the requests by revision, and which revision has been rolled out whole."""

    weights: dict[str, int]
    rolled_out: str
    latest: str = ""
    """The newest revision where it serves beside the one before, even without a weight."""
    previous: str = ""
    """The revision that was rolled out before."""
    returning: str = ""
    """The previous revision, which gets requests back once it has a ready replica."""

    def beside(self, canaries: Mapping[str, int]) -> Split:
        """Return the split when *canaries* get their per cent, and the rest as before."""
        if not canaries:
            return self
        left, given = 100 - sum(canaries.values()), 0
        weights = dict(canaries)
        for name, weight in sorted(self.weights.items(), key=lambda one: one[1]):
            weights[name] = weight * left // 100
            given += weights[name]
        if self.weights:
            weights[max(self.weights, key=lambda one: self.weights[one])] += left - given
        return replace(self, weights=weights)


def split(
    latest: str,
    *,
    latest_ready: bool,
    rolled_out: str,
    percent: int | None,
    asked_for: bool = False,
) -> Split:
    """Return how requests are split.

    A revision gets requests only once it was ready; until then the one before keeps all of them.
    *percent* is what the latest gets beside the one that was *rolled_out* before. Where it is
    *asked_for* by requests themselves, or gets copies, it serves even without a share.
    """
    if not rolled_out or rolled_out == latest:
        return Split({latest: 100}, latest if latest_ready else rolled_out)
    if not latest_ready:
        return Split({rolled_out: 100}, rolled_out)
    if percent is None or percent == 100:
        return Split({latest: 100}, latest)
    weights = {latest: percent, rolled_out: 100 - percent}
    kept = {name: weight for name, weight in weights.items() if weight}
    if asked_for:
        kept.setdefault(latest, 0)
    return Split(kept, rolled_out, latest if latest in kept else "")


def returns(latest: str, rolled_out: str, previous: str, percent: int | None) -> bool:
    """Return whether requests go back to the *previous* revision.

    They do when *percent* falls below 100 after *latest* was *rolled_out*, as with KServe.
    """
    lowered = percent is not None and percent < 100
    return lowered and rolled_out == latest and previous not in ("", latest)


def replicas(wanted: int, weights: dict[str, int]) -> dict[str, int]:
    """Return how many of *wanted* replicas each revision gets, by its weight and at least one."""
    if wanted == 0:
        return dict.fromkeys(weights, 0)
    return {name: max(1, math.ceil(wanted * weight / 100)) for name, weight in weights.items()}
