"""Which of KAI's kinds are served."""

from __future__ import annotations

from typing import Final

from lockstep.compat.foreign_kinds import ForeignKind
from lockstep.compat.podgroups import KAI as PODGROUP

QUEUE: Final = ForeignKind(
    "scheduling.run.ai",
    "v2",
    "Queue",
    "queues",
    namespaced=False,
    columns=(("Parent", "string", ".spec.parentQueue"),),
)

KINDS: Final[tuple[ForeignKind, ...]] = (PODGROUP, QUEUE)
