"""Which of et-operator's kinds are served."""

from __future__ import annotations

from typing import Final

from lockstep.compat.foreign_kinds import ForeignKind, family

GROUP: Final = "kai.alibabacloud.com"
_kind = family(GROUP, "v1alpha1")
_PHASE: Final = (("Phase", "string", ".status.phase"),)

JOB: Final = _kind("TrainingJob", "trainingjobs", columns=_PHASE)
SCALE_IN: Final = _kind("ScaleIn", "scaleins", columns=_PHASE)
SCALE_OUT: Final = _kind("ScaleOut", "scaleouts", columns=_PHASE)

KINDS: Final[tuple[ForeignKind, ...]] = (JOB, SCALE_IN, SCALE_OUT)
