"""et-operator's jobs, as they are served; scaling them has a controller of its own."""

from __future__ import annotations

from typing import Final

from lockstep.compat.etoperator import job, status
from lockstep.compat.etoperator.kinds import JOB
from lockstep.compat.translation import Source, translating

SOURCES: Final = (Source(JOB, translating(job.to_native), status.status_of, ended=status.ended),)
