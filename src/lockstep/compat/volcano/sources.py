"""Volcano's kinds, as they are served."""

from __future__ import annotations

from typing import Final

from lockstep.compat.podgroups import VOLCANO_SOURCE
from lockstep.compat.translation import Source, translating
from lockstep.compat.volcano import job, queue, status
from lockstep.compat.volcano.kinds import JOB, QUEUE

SOURCES: Final = (
    Source(JOB, translating(job.to_native), status.status_of, ended=status.ended),
    VOLCANO_SOURCE,
    Source(QUEUE, translating(queue.to_native), queue.status_of),
)
