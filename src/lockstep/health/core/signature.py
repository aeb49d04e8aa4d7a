"""What a line of a log looks like that tells of a fault."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lockstep.api.diagnosis import Act, Class

Where = Literal["kernel", "rank"]
"""Who writes the line: a node's kernel or its services, or a process of a job."""


@dataclass(frozen=True, slots=True)
class Signature:
    """A pattern (RE2) with what it means. ``{}`` in *cause* takes the pattern's first group.

    A *cascade* follows from another fault: it says that something failed, and not what.
    *weak* ones say little by themselves; anything else that is found precedes them.
    """

    pattern: str
    class_: Class
    action: Act
    confidence: float
    cause: str
    where: Where = "rank"
    cascade: bool = False
    weak: bool = False
    static: bool = False
    """Of the program or its image alone: no machine's fault brings it about."""

    @property
    def tier(self) -> int:
        """Return 0 for what explains itself, 1 for what says little, 2 for what follows."""
        if self.cascade:
            return 2
        return 1 if self.weak else 0
