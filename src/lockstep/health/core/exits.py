"""What exit codes and signals say by themselves."""

from __future__ import annotations

from signal import Signals
from typing import Final

PERMANENT_EXIT_CODES: Final = {
    126: "its command cannot be executed",
    127: "its command was not found",
}
"""Exit codes that no restart can change, by the convention of POSIX shells."""


FOR_MEMORY: Final = "for it used more memory than its pod may (OOMKilled)"


def last_line(signal: int, line: str) -> str:
    """Return the last that a process wrote, after how it ended; signals are not what it tells."""
    if not line:
        return ""
    return f"; it wrote last: {line}" if signal else f": {line}"


def in_words(code: int, signal: int) -> str:
    """Return how a process ended: ``ended by signal 9 (SIGKILL)``, ``ended with code 1``."""
    if not signal:
        return f"ended with code {code}"
    try:
        return f"ended by signal {signal} ({Signals(signal).name})"
    except ValueError:
        return f"ended by signal {signal}"
