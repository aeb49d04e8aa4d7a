"""Which revision, and which of its replicas, gets a request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar


class Loaded(Protocol):
    """What has a number of requests under way."""

    in_flight: int


R = TypeVar("R", bound=Loaded)


class Turns:
    """Deals requests to revisions so that each gets exactly its share (smooth weighted turns).

    After any number of requests, each revision's count differs from its share by less than one
    for two revisions, and by less than the number of revisions for more.
    """

    def __init__(self) -> None:
        self._credit: dict[str, int] = {}

    def take(self, weights: Mapping[str, int]) -> str | None:
        """Return whose turn it is; none where no weight is above zero."""
        if len(weights) == 1:
            return next((name for name, weight in weights.items() if weight), None)
        credit = {name: self._credit.get(name, 0) + w for name, w in weights.items() if w}
        if not credit:
            return None
        first = max(credit, key=lambda name: (credit[name], name))
        credit[first] -= sum(weights.values())
        self._credit = credit
        return first


def least_loaded(replicas: Sequence[R], limit: int, turn: int) -> R | None:
    """Return a replica with the fewest requests under way, alike ones in turn.

    None where all have *limit* (0: no limit).
    """
    best: R | None = None
    count = len(replicas)
    for step in range(count):
        one = replicas[(turn + step) % count]
        if (limit == 0 or one.in_flight < limit) and (
            best is None or one.in_flight < best.in_flight
        ):
            best = one
    return best
