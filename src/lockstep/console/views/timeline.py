"""A job's life as its record tells it: stages, and the attempts with how they ended."""

from __future__ import annotations

from lockstep.api import wire
from lockstep.api.training import TrainingJob
from lockstep.api.wire import Json


def stages(job: TrainingJob) -> list[Json]:
    """Return stages in order, each with its name, start, and end (empty while it lasts)."""
    spans = job.status.history.spans
    return [{"stage": one.phase, "start": one.begin, "end": one.end} for one in spans]


def attempts(job: TrainingJob) -> list[Json]:
    """Return the attempts that are on record, the oldest first."""
    return [wire.to_builtins(one) for one in job.status.history.attempts]
