"""What ranks tell of themselves, for Prometheus: read from their launchers' reports at a scrape."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from lockstep.api.core import Lease
from lockstep.api.names import JOB_LABEL
from lockstep.api.rendezvous import RankFigures
from lockstep.api.training import TrainingJob
from lockstep.jobs.gathering import report_in
from lockstep.kube.informer import Informer

_LABELS: Final = ("namespace", "job", "pod", "local_rank")
_FIGURES: Final = (
    ("steps", "Optimizer steps since the rank was started."),
    ("step_seconds", "Median time of its last 128 steps."),
    ("step_seconds_p99", "Time that 99 of 100 of its last 128 steps did not exceed."),
    ("data_wait_ratio", "Share of its last 128 steps' time that was waited for data."),
    ("last_step_timestamp_seconds", "When its last step ended, Unix time."),
    ("gpu_memory_bytes", "Most bytes that torch has held of its GPU."),
    ("suspect", "Whether its present step takes so long that it may hang."),
)


class RankMetrics(Collector):
    """The figures of all ranks that run; nothing is kept between scrapes."""

    def __init__(self, jobs: Informer[TrainingJob], leases: Informer[Lease]) -> None:
        self._jobs, self._leases = jobs, leases

    def describe(self) -> Iterable[GaugeMetricFamily]:
        """Return the metrics without values."""
        return _families()

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the metrics as the reports say them now."""
        families = _families()
        for lease in self._leases:
            meta = lease.metadata
            job = self._jobs.get(meta.namespace, meta.labels.get(JOB_LABEL, ""))
            report = report_in(lease)
            if job is None or report is None or report.generation != job.status.generation:
                continue
            if report.state != "Running":
                continue
            for one in report.ranks:
                labels = (meta.namespace, job.metadata.name, meta.name, str(one.local))
                for family, value in zip(families, _values(one), strict=True):
                    if value is not None:
                        family.add_metric(labels, value)
        yield from families


def _families() -> list[GaugeMetricFamily]:
    return [
        GaugeMetricFamily(f"lockstep_training_{name}", said, labels=_LABELS)
        for name, said in _FIGURES
    ]


def _values(one: RankFigures) -> tuple[float | None, ...]:
    stepped = one.at is not None
    return (
        float(one.steps),
        one.seconds if stepped else None,
        one.p99 if stepped else None,
        one.data if stepped else None,
        one.at,
        float(one.gpu_memory) if one.gpu_memory else None,
        float(one.suspect),
    )
