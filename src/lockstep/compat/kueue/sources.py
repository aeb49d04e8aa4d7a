"""Kueue's kinds, as they are served."""

from __future__ import annotations

from typing import Final

from lockstep.compat import tiers
from lockstep.compat.kueue import translate
from lockstep.compat.kueue.kinds import (
    ADMISSION_CHECK,
    CLUSTER_QUEUE,
    COHORT,
    FLAVOR,
    LOCAL_QUEUE,
    PRIORITY,
    TOPOLOGY,
)
from lockstep.compat.pods import local_queue
from lockstep.compat.translation import Source, translating, translating_with

SOURCES: Final = (
    Source(
        CLUSTER_QUEUE,
        translating_with(translate.cluster_queue),
        translate.status_of,
        reads=(ADMISSION_CHECK,),
    ),
    Source(COHORT, translating(translate.cohort), translate.status_of),
    Source(FLAVOR, translating(translate.flavor), translate.status_of),
    Source(LOCAL_QUEUE, translating(translate.local), translate.status_of, native_name=local_queue),
    Source(PRIORITY, translating(translate.priority), translate.priority_status),
    Source(
        TOPOLOGY,
        translating_with(translate.topology),
        translate.status_of,
        reads=(tiers.TOPOLOGY,),
    ),
)
