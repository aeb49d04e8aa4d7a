"""Volcano's kinds, as they are served."""

from __future__ import annotations

from typing import Final

from lockstep.compat.podgroups import VOLCANO_SOURCE
from lockstep.compat.translation import Source, translating, translating_with
from lockstep.compat.volcano import flow, job, queue, status
from lockstep.compat.volcano.kinds import FLOW, JOB, QUEUE, TEMPLATE

SOURCES: Final = (
    Source(JOB, translating(job.to_native), status.status_of, ended=status.ended),
    VOLCANO_SOURCE,
    Source(QUEUE, translating(queue.to_native), queue.status_of),
    Source(
        FLOW,
        translating_with(flow.to_native),
        flow.status_of,
        ended=flow.ended,
        names=flow.names,
        drops=flow.drops,
        reads=(TEMPLATE,),
    ),
)
