"""Which of coscheduling's kinds are served."""

from __future__ import annotations

from typing import Final

from lockstep.compat.foreign_kinds import ForeignKind
from lockstep.compat.podgroups import COSCHEDULING

KINDS: Final[tuple[ForeignKind, ...]] = (COSCHEDULING,)
