"""The Trainer's kinds, as they are served."""

from __future__ import annotations

from typing import Final

from lockstep.compat.trainer import status, translate
from lockstep.compat.trainer.kinds import CLUSTER_RUNTIME, JOB, RUNTIME
from lockstep.compat.translation import Source, translating_with

SOURCES: Final = (
    Source(
        JOB,
        translating_with(translate.to_native),
        status.status_of,
        ended=status.ended,
        manager=translate.manager,
        reads=(CLUSTER_RUNTIME, RUNTIME),
    ),
)
