"""The record of a job's life as tables and sentences."""

from __future__ import annotations

from collections.abc import Iterator

from lockstep.api import duration
from lockstep.api.job_history import IN_WORDS, Attempt, History, RankEnd, present, seconds
from lockstep.api.training import TrainingJob
from lockstep.cli.views.table import Column, Table, cell, table
from lockstep.cli.views.times import ago
from lockstep.health.core.exits import in_words, last_line


def span_table(history: History, now: float) -> Table:
    """Return what the job did when, the oldest first."""
    columns = ("Phase", "Since", Column("Lasted", number=True))
    rows = ((one.phase, one.begin, duration.show(seconds(one, now))) for one in history.spans)
    return table(columns, rows)


def attempt_table(history: History, now: float) -> Table:
    """Return the attempts on record, the oldest first."""
    numbers = ("Attempt", "World", "Pods", "Nodes", "Step", "Lasted")
    counted = [Column(name, number=True) for name in numbers]
    columns: list[Column | str] = [*counted, "Ended", Column("Why", text=True)]
    return table(columns, (_row(one, now) for one in history.attempts))


def _row(one: Attempt, now: float) -> tuple[object, ...]:
    return (
        one.number,
        one.generation or None,
        one.pods,
        one.node_count,
        one.step if one.step >= 0 else None,
        duration.show(seconds(one, now)),
        one.reason,
        one.why,
    )


def doing(job: TrainingJob, now: float) -> str:
    """Return what the job does and since when: ``runs since 3m``; empty where that is not known."""
    last = present(job.status.history)
    return "" if last is None else f"{IN_WORDS[last.phase]} since {ago(last.begin, now)}"


def last_end(job: TrainingJob) -> Iterator[str]:
    """Yield how the first ranks of the attempt that failed last ended."""
    failed = [one for one in job.status.history.attempts if one.ended]
    for one in failed[-1].ended[:1] if failed else ():
        yield _end(one)


def _end(one: RankEnd) -> str:
    who = f"rank {one.rank} in pod {one.pod}" if one.rank is not None else f"pod {one.pod}"
    return f"{who} {in_words(one.code, one.signal)}{last_line(one.signal, cell(one.line))}"
