"""Kubernetes' own kinds, as they are served."""

from __future__ import annotations

from typing import Final

from lockstep.compat.foreign_kinds import ForeignKind
from lockstep.compat.kubernetes import job, status
from lockstep.compat.translation import Source, translating

JOB: Final = ForeignKind("batch", "v1", "Job", "jobs")

SOURCES: Final = (
    Source(
        JOB,
        translating(job.to_native),
        status.status_of,
        ended=status.ended,
        manager=job.manager,
        built_in=True,
    ),
)
