"""What exit codes and signals say by themselves."""

from __future__ import annotations

from typing import Final

PERMANENT_EXIT_CODES: Final = {
    126: "its command cannot be executed",
    127: "its command was not found",
}
"""Exit codes that no restart can change, by the convention of POSIX shells."""
