"""Which of et-operator's kinds are served."""

from __future__ import annotations

from typing import Final

from lockstep.compat.foreign_kinds import ForeignKind

GROUP: Final = "kai.alibabacloud.com"
_PHASE: Final = (("Phase", "string", ".status.phase"),)

JOB: Final = ForeignKind(GROUP, "v1alpha1", "TrainingJob", "trainingjobs", columns=_PHASE)
SCALE_IN: Final = ForeignKind(GROUP, "v1alpha1", "ScaleIn", "scaleins", columns=_PHASE)
SCALE_OUT: Final = ForeignKind(GROUP, "v1alpha1", "ScaleOut", "scaleouts", columns=_PHASE)

KINDS: Final[tuple[ForeignKind, ...]] = (JOB, SCALE_IN, SCALE_OUT)
