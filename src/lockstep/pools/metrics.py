"""What node pools count."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge

from lockstep.pools.core.pool import Pool

STATES = ("ready", "coming", "leaving")


class PoolMetrics:
    """The metrics of all pools in one registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._nodes = Gauge(
            "lockstep_pool_nodes",
            "Nodes of a pool by state: ready, coming, leaving.",
            ["pool", "state"],
            registry=registry,
        )
        self._cost = Gauge(
            "lockstep_pool_hourly_cost",
            "What the nodes of a pool cost an hour; absent where no price is known.",
            ["pool"],
            registry=registry,
        )
        self.failures = Counter(
            "lockstep_pool_failures_total",
            "Requests that came to nothing, by reason.",
            ["pool", "reason"],
            registry=registry,
        )
        self._known: set[str] = set()

    def show(self, pools: Iterable[Pool]) -> None:
        """Take how the pools are now."""
        seen = set()
        for pool in pools:
            seen.add(pool.name)
            counts = (len(pool.ready - pool.leaving), len(pool.coming), len(pool.leaving))
            for state, count in zip(STATES, counts, strict=True):
                self._nodes.labels(pool.name, state).set(count)
            if pool.node_hour is not None:
                self._cost.labels(pool.name).set(pool.node_hour * len(pool.names))
        for gone in self._known - seen:
            for state in STATES:
                self._nodes.remove(gone, state)
            self._cost.remove(gone)
        self._known = seen
