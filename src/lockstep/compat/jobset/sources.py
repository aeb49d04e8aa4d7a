"""JobSet's kinds, as they are served."""

from __future__ import annotations

from typing import Final

from lockstep.compat.jobset import status, translate
from lockstep.compat.jobset.kinds import JOBSET
from lockstep.compat.translation import Source, translating

SOURCES: Final = (
    Source(
        JOBSET,
        translating(translate.to_native),
        status.status_of,
        ended=status.ended,
        manager=translate.manager,
    ),
)
