"""Kueue's kinds, as they are served."""

from __future__ import annotations

from typing import Final

from lockstep.compat.kueue import translate
from lockstep.compat.kueue.kinds import CLUSTER_QUEUE, COHORT, FLAVOR, LOCAL_QUEUE
from lockstep.compat.pods import local_queue
from lockstep.compat.translation import Source, translating

SOURCES: Final = (
    Source(CLUSTER_QUEUE, translating(translate.cluster_queue), translate.status_of),
    Source(COHORT, translating(translate.cohort), translate.status_of),
    Source(FLAVOR, translating(translate.flavor), translate.status_of),
    Source(LOCAL_QUEUE, translating(translate.local), translate.status_of, native_name=local_queue),
)
