"""Kubernetes' gangs, as they are served."""

from __future__ import annotations

from typing import Final

from lockstep.compat.scheduling import podgroup
from lockstep.compat.scheduling.kinds import PODGROUP
from lockstep.compat.tiers import TOPOLOGY
from lockstep.compat.translation import Source, translating_with

SOURCES: Final = (
    Source(
        PODGROUP,
        translating_with(podgroup.to_native),
        podgroup.status_of,
        reads=(TOPOLOGY,),
    ),
)
