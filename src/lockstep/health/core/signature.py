"""What a line of a log looks like that tells of a fault."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lockstep.api.diagnosis import Act, Class

Where = Literal["kernel", "rank"]
"""Who writes the line: a node's kernel or its services, or a process of a job."""
Kind = Literal["", "weak", "cascade", "static"]
"""A *cascade* follows from another fault: it says that something failed, and not what. *weak* ones
say little by themselves; anything else that is found precedes them. *static* ones are of the
program or its image alone: no machine's fault brings them about."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a fault is, and what is done about it."""

    class_: Class
    action: Act
    confidence: float
    kind: Kind = ""

    @property
    def tier(self) -> int:
        """Return 0 for what explains itself, 1 for what says little, 2 for what follows."""
        return {"weak": 1, "cascade": 2}.get(self.kind, 0)


@dataclass(frozen=True, slots=True)
class Signature:
    """A pattern (RE2) with what it means. ``{}`` in *cause* takes the pattern's first group."""

    pattern: str
    verdict: Verdict
    cause: str
    where: Where = "rank"
