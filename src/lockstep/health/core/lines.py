"""Lines of logs, and those that fit a signature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from lockstep.health.core.signature import Signature

NO_RANK: Final = -1
YEARLESS: Final = 366 * 86400.0
"""Times below are of a line that names no year."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a log, with what is known of its origin; ``at`` is in seconds, None unknown."""

    text: str
    node: str = ""
    rank: int = NO_RANK
    at: float | None = None
    file: str = ""
    killed: bool = False
    """Of a process that signal 9 ended: it could not tell why, so its warnings explain nothing."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A line that fits a signature, and its place among all lines."""

    line: Line
    signature: Signature
    order: int
