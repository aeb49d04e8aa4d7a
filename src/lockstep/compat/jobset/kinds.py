"""Which of JobSet's kinds are served."""

from __future__ import annotations

from typing import Final

from lockstep.compat.foreign_kinds import ForeignKind

JOBSET: Final = ForeignKind(
    "jobset.x-k8s.io",
    "v1alpha2",
    "JobSet",
    "jobsets",
    columns=(
        ("TerminalState", "string", ".status.terminalState"),
        ("Restarts", "string", ".status.restarts"),
        ("Suspended", "boolean", ".spec.suspend"),
    ),
)

KINDS: Final[tuple[ForeignKind, ...]] = (JOBSET,)
