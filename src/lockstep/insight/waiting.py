"""What Prometheus is told of waiting and of saved state: late gangs, starving queues, old saves."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from lockstep.api import checkpoint, duration, timestamp
from lockstep.api.gang import Gang
from lockstep.api.names import JOB_LABEL
from lockstep.api.quantity import parse
from lockstep.api.queue import Queue

USUAL_INTERVAL: Final = "10m"
"""Time between two saves of a job that says of none: the launcher's own."""


class WaitingMetrics(Collector):
    """Gauges from gangs and queues, as they are at a scrape."""

    def __init__(
        self,
        gangs: Iterable[Gang],
        queues: Iterable[Queue],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._gangs, self._queues, self._clock = gangs, queues, clock
        self._promised: dict[str, float] = {}
        """By the uid of a gang that waits, when it was to start by the first estimate seen."""

    def describe(self) -> Iterable[GaugeMetricFamily]:
        """Return the metrics without values."""
        return _families()

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the metrics as they are now."""
        now = self._clock()
        late, starving, age = _families()
        waiting = [one for one in self._gangs if _waits(one)]
        self._promise(waiting)
        for one in waiting:
            promised = self._promised.get(one.metadata.uid)
            if promised is not None:
                meta = one.metadata
                labels = (meta.namespace, meta.name, one.spec.queue)
                late.add_metric(labels, max(0.0, now - promised))
        since = _oldest(waiting)
        for queue in self._queues:
            name = queue.metadata.name
            if name in since and _short(queue):
                starving.add_metric((name,), max(0.0, now - since[name]))
        for one in self._gangs:
            if (ratio := stale(one, now)) is not None:
                job = one.metadata.labels.get(JOB_LABEL, one.metadata.name)
                age.add_metric((one.metadata.namespace, job), ratio)
        yield from (late, starving, age)

    def _promise(self, waiting: Iterable[Gang]) -> None:
        """Remember the first estimate of each gang that waits: later ones only move away."""
        kept: dict[str, float] = {}
        for one in waiting:
            uid = one.metadata.uid
            told = self._promised.get(uid, timestamp.read(one.status.estimated_start))
            if told is not None:
                kept[uid] = told
        self._promised = kept


def stale(gang: Gang, now: float) -> float | None:
    """Return the age of a running gang's last save in intervals; None where it saves nothing."""
    said = gang.spec.checkpoint
    placed = timestamp.read(gang.status.placed_at)
    if placed is None or said is None:
        return None
    saved = checkpoint.last(gang.metadata.annotations, gang.status.last_checkpoint)
    interval = duration.parse(said.interval or USUAL_INTERVAL)
    return max(0.0, now - max(placed, saved or 0.0)) / interval if interval else None


def _waits(gang: Gang) -> bool:
    return gang.status.placed_at is None and gang.metadata.deletion_timestamp is None


def _oldest(waiting: Iterable[Gang]) -> Mapping[str, float]:
    """Return by queue since when its oldest gang waits."""
    found: dict[str, float] = {}
    for one in waiting:
        since = timestamp.read(one.status.waiting_since or one.metadata.creation_timestamp)
        if since is not None:
            found[one.spec.queue] = min(since, found.get(one.spec.queue, since))
    return found


def _short(queue: Queue) -> bool:
    """Tell whether a queue has less than its guaranteed share of something."""
    used = queue.status.used
    return any(
        parse(str(used.get(name, "0"))) < parse(str(amount))
        for name, amount in queue.spec.guaranteed.items()
    )


def _families() -> tuple[GaugeMetricFamily, GaugeMetricFamily, GaugeMetricFamily]:
    return (
        GaugeMetricFamily(
            "lockstep_gang_overdue_seconds",
            "Time since a gang that waits was to start by the first estimate; 0 before that.",
            labels=("namespace", "gang", "queue"),
        ),
        GaugeMetricFamily(
            "lockstep_queue_starving_seconds",
            "How long the oldest gang waits of a queue that has less than its guaranteed share.",
            labels=("queue",),
        ),
        GaugeMetricFamily(
            "lockstep_job_checkpoint_age_ratio",
            "Age of a running job's last saved state, in intervals between two saves.",
            labels=("namespace", "lockstep_job"),
        ),
    )
