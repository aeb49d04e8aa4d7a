"""Coscheduling's kinds, as they are served."""

from __future__ import annotations

from typing import Final

from lockstep.compat.podgroups import COSCHEDULING_SOURCE

SOURCES: Final = (COSCHEDULING_SOURCE,)
