"""What the scheduler counts and times."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)


class Metrics:
    """The scheduler's metrics in one registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.decision = Histogram(
            "lockstep_scheduler_decision_seconds",
            "Time of one decision round, from the change to all of its placements.",
            buckets=_SECONDS,
            registry=registry,
        )
        self.bind = Histogram(
            "lockstep_scheduler_bind_seconds",
            "Time from a placement to its pod's binding, the wait for a free connection included.",
            buckets=_SECONDS,
            registry=registry,
        )
        self.attempts = Counter(
            "lockstep_scheduler_attempts_total",
            "Units decided on, by result: placed, unschedulable, preempting, rolled_back, error.",
            ["result"],
            registry=registry,
        )
        self.bindings = Counter(
            "lockstep_scheduler_bindings_total",
            "Pods bound or not, by result: bound, lost, refused.",
            ["result"],
            registry=registry,
        )
        self.pending = Gauge(
            "lockstep_scheduler_pending_gangs",
            "Gangs and single pods that wait for a place.",
            registry=registry,
        )
