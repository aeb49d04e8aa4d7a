"""What a process of Lockstep measures about itself, for Prometheus."""

from __future__ import annotations

from typing import Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)

_FAST = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)


class Metrics:
    """The metrics of one process in a registry of their own; parts may add theirs to it."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        PlatformCollector(registry=self.registry)
        ProcessCollector(registry=self.registry)
        self._depth = Gauge(
            "lockstep_workqueue_depth",
            "Keys that wait for a worker.",
            ["controller"],
            registry=self.registry,
        )
        self._waited = self._seconds(
            "lockstep_workqueue_wait_seconds", "Time for which keys waited.", ["controller"]
        )
        self._reconciled = self._seconds(
            "lockstep_reconcile_seconds",
            "Duration of reconciling by outcome.",
            ["controller", "outcome"],
        )
        self._requests = Counter(
            "lockstep_client_requests",
            "Requests to the API server; code 0 means that no answer came.",
            ["method", "code"],
            registry=self.registry,
        )
        self._latency = self._seconds(
            "lockstep_client_request_seconds", "Duration of requests.", ["method"]
        )
        self._by_answer: dict[tuple[str, int], tuple[Counter, Histogram]] = {}
        """The two of each kind of answer: finding them by label takes longer than counting."""
        self._leader = Gauge(
            "lockstep_leader", "Whether this process leads.", ["name"], registry=self.registry
        )
        self._objects = Gauge(
            "lockstep_informer_objects",
            "Objects in the local cache.",
            ["resource"],
            registry=self.registry,
        )

    def _seconds(self, name: str, help_: str, labels: list[str]) -> Histogram:
        return Histogram(name, help_, labels, buckets=_FAST, registry=self.registry)

    def depth(self, controller: str, ready: int) -> None:
        """Take the number of keys that are ready."""
        self._depth.labels(controller).set(ready)

    def waited(self, controller: str, seconds: float) -> None:
        """Take how long a key was ready before the work on it began."""
        self._waited.labels(controller).observe(seconds)

    def reconciled(self, controller: str, seconds: float, outcome: str) -> None:
        """Take how long a call lasted and how it ended."""
        self._reconciled.labels(controller, outcome).observe(seconds)

    def request(self, method: str, status: int, seconds: float) -> None:
        """Take a request to the API server."""
        found = self._by_answer.get((method, status))
        if found is None:
            found = self._requests.labels(method, str(status)), self._latency.labels(method)
            self._by_answer[method, status] = found
        found[0].inc()
        found[1].observe(seconds)

    def watch_leader(self, name: str, leading: Any) -> None:
        """Ask the function *leading* at each scrape whether this process leads."""
        self._leader.labels(name).set_function(lambda: float(leading()))

    def watch_informer(self, resource: str, informer: Any) -> None:
        """Ask *informer* at each scrape how many objects it holds."""
        self._objects.labels(resource).set_function(lambda: float(len(informer)))

    def exposition(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self.registry)
