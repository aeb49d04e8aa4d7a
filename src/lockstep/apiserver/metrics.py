"""What the server counts, and how Prometheus reads it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

    from lockstep.apiserver.store import Store
    from lockstep.apiserver.watch import Hub


class Metrics:
    """Counts requests; the gauges are read from the store and the hub when asked for."""

    def __init__(self, store: Store, hub: Hub) -> None:
        self._store = store
        self._hub = hub
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._seconds: dict[str, float] = defaultdict(float)

    def count(self, verb: str, resource: str, code: int, seconds: float) -> None:
        """Count an answered request and the time until its answer began."""
        self._requests[verb, resource, code] += 1
        self._seconds[verb] += seconds

    def expose(self) -> bytes:
        """Return everything in Prometheus' text format."""
        # Nothing else needs the library, and it is slow to load.
        from prometheus_client import CollectorRegistry, generate_latest

        registry = CollectorRegistry()
        registry.register(self)
        return bytes(generate_latest(registry))

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics, as the Prometheus library asks for them."""
        from prometheus_client.core import (
            CounterMetricFamily,
            GaugeMetricFamily,
            SummaryMetricFamily,
        )

        requests = CounterMetricFamily(
            "apiserver_request", "Requests answered.", labels=["verb", "resource", "code"]
        )
        by_verb: Counter[str] = Counter()
        for (verb, resource, code), number in self._requests.items():
            requests.add_metric([verb, resource, str(code)], number)
            by_verb[verb] += number
        yield requests
        duration = SummaryMetricFamily(
            "apiserver_request_duration_seconds", "Time until an answer began.", labels=["verb"]
        )
        for verb, number in by_verb.items():
            duration.add_metric([verb], number, self._seconds[verb])
        yield duration
        objects = GaugeMetricFamily(
            "apiserver_storage_objects", "Objects stored.", labels=["resource"]
        )
        for resource, number in self._store.counts().items():
            objects.add_metric([resource], number)
        yield objects
        for name, about, value in (
            ("apiserver_storage_revision", "Revision of the newest write.", self._store.revision),
            ("apiserver_storage_compacted", "Oldest revision kept.", self._store.compacted),
            ("apiserver_watchers", "Watches under way.", len(self._hub)),
        ):
            yield GaugeMetricFamily(name, about, value)
