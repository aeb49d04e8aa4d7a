"""Advice on all jobs, for Prometheus: judged at a scrape from what their launchers report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from lockstep.api.core import Lease
from lockstep.api.names import JOB_LABEL, REPORT_ANNOTATION
from lockstep.api.probes import Sheet
from lockstep.insight.advice.evidence import Evidence, gather, read
from lockstep.insight.advice.judge import judge
from lockstep.kube.informer import Informer

_JOB: Final = ("namespace", "lockstep_job")


class AdviceMetrics(Collector):
    """Where the time of each job's steps goes, and what mending its causes would gain."""

    def __init__(self, leases: Informer[Lease]) -> None:
        self._leases = leases

    def describe(self) -> Iterable[GaugeMetricFamily]:
        """Return the metrics without values."""
        return _families()

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the metrics as the reports say them now."""
        sheets: dict[tuple[str, str], list[Sheet]] = {}
        for lease in self._leases:
            meta = lease.metadata
            found = read(meta.annotations.get(REPORT_ANNOTATION, ""))
            if found:
                sheets.setdefault((meta.namespace, meta.labels.get(JOB_LABEL, "")), []).extend(
                    found
                )
        seconds, parts, gains = _families()
        for job, told in sorted(sheets.items()):
            evidence = gather(told)
            if not evidence.steps:
                continue
            seconds.add_metric(job, evidence.step)
            for phase, part in _parts(evidence).items():
                parts.add_metric((*job, phase), part)
            for verdict in judge(evidence).verdicts:
                gains.add_metric((*job, verdict.cause), verdict.gain)
        yield from (seconds, parts, gains)


def _parts(evidence: Evidence) -> dict[str, float]:
    return {
        "input": evidence.wait,
        "starting_workers": evidence.starting,
        "saving": evidence.saving,
        "communication": evidence.talk,
        "waiting_for_ranks": evidence.straggling,
        "logging": evidence.phases.get("logging", 0.0),
    }


def _families() -> tuple[GaugeMetricFamily, GaugeMetricFamily, GaugeMetricFamily]:
    return (
        GaugeMetricFamily("lockstep_job_step_seconds", "Time of a step.", labels=_JOB),
        GaugeMetricFamily(
            "lockstep_job_step_ratio",
            "Part of a step's time by what it goes into, where that is no computing.",
            labels=(*_JOB, "phase"),
        ),
        GaugeMetricFamily(
            "lockstep_job_advice_gain_ratio",
            "Part of a step's time that would go once the cause is mended.",
            labels=(*_JOB, "cause"),
        ),
    )
