"""A job's ranks as rows: how fast each steps, and what it waits for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from lockstep.api import copies
from lockstep.api.core import Lease, Pod
from lockstep.api.goodput import in_words, lost_in_words
from lockstep.api.names import RANK_ANNOTATION, REPORT_ANNOTATION
from lockstep.api.rendezvous import RankFigures, Report
from lockstep.api.training import TrainingJob
from lockstep.cli.views.table import Column, Table, natural, table

COLUMNS: tuple[Column | str, ...] = (
    "Pod",
    Column("Local", number=True),
    "Node",
    "State",
    *(
        Column(name, number=True)
        for name in ("Steps", "Step s", "p99 s", "Data %", "GPU GB", "Last step s ago")
    ),
    Column("Process", number=True, wide=True),
)


def rank_table(job: TrainingJob, leases: Iterable[Lease], pods: Iterable[Pod], now: float) -> Table:
    """Return the ranks of *job* that run now, by pod."""
    node_of = {pod.metadata.name: pod.spec.node_name for pod in pods}
    order = {pod.metadata.name: pod.metadata.annotations.get(RANK_ANNOTATION, "") for pod in pods}
    present = [one for one in leases if one.metadata.name in node_of]
    present.sort(key=lambda one: (natural(order[one.metadata.name]), natural(one.metadata.name)))
    rows = (row for one in present for row in _rows(job, one, node_of[one.metadata.name], now))
    return table(COLUMNS, rows)


def summary(job: TrainingJob, now: float) -> str:
    """Return what the job's time went to, in one line."""
    words = in_words(job.status.goodput, now)
    state = job.status.goodput.cause or job.status.phase.lower()
    lost = lost_in_words(job.status.goodput)
    kept = copies.in_words(job.status.copies, job.status.replicated)
    parts = [state, f"goodput {words}" if words else "", f"done again: {lost}" if lost else ""]
    return "; ".join(one for one in (*parts, kept) if one)


def _rows(job: TrainingJob, lease: Lease, node: str, now: float) -> Iterator[tuple[object, ...]]:
    try:
        report = msgspec.json.decode(lease.metadata.annotations[REPORT_ANNOTATION], type=Report)
    except (KeyError, msgspec.DecodeError):
        return
    if report.generation != job.status.generation:
        return
    if not report.ranks:
        yield (lease.metadata.name, None, node, report.state, *[None] * 7)
    for one in report.ranks:
        yield (lease.metadata.name, one.local, node, _state(report, one), *_figures(one, now))


def _state(report: Report, one: RankFigures) -> str:
    return "may hang" if one.suspect else report.state


def _figures(one: RankFigures, now: float) -> tuple[object, ...]:
    memory = f"{one.gpu_memory / 1e9:.1f}" if one.gpu_memory else None
    if one.at is None:
        return (one.steps, None, None, None, memory, None, one.pid)
    times = (f"{one.seconds:.3g}", f"{one.p99:.3g}", f"{100 * one.data:.0f}")
    return (one.steps, *times, memory, f"{max(0.0, now - one.at):.0f}", one.pid)
