"""The load of a route, from the counts that its routers keep."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from lockstep.api import timestamp
from lockstep.api.serving import ROUTER_LIVES, RouteLoad, Router


def alive(routers: Iterable[Router], now: float) -> list[Router]:
    """Return the routers that have said lately that they live."""
    return [
        one
        for one in routers
        if one.status.renewed_at and now - timestamp.parse(one.status.renewed_at) < ROUTER_LIVES
    ]


@dataclass(slots=True)
class Meter:
    """Turns counts that only grow into averages; one for a route."""

    last: dict[str, RouteLoad] = field(default_factory=dict)
    at: float | None = None

    def read(self, counts: dict[str, RouteLoad], now: float) -> tuple[float, float]:
        """Return the average concurrency and the requests a second since the last reading.

        *counts* are by router and life of it; one that is new is counted from zero.
        """
        elapsed = now - self.at if self.at is not None else 0.0
        busy = requests = 0.0
        for router, load in counts.items():
            before = self.last.get(router, RouteLoad())
            busy += max(0.0, load.busy - before.busy)
            requests += max(0, load.requests - before.requests)
        self.last, self.at = counts, now
        if elapsed <= 0:
            return 0.0, 0.0
        # What is under way has not been counted as busy yet if no router wrote meanwhile.
        under_way = sum(load.in_flight + load.held for load in counts.values())
        return max(busy / elapsed, float(under_way) if busy == 0 else 0.0), requests / elapsed
