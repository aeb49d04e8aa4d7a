"""What is said of workloads and objects that the scheduler itself stumbles over."""

from __future__ import annotations

from lockstep.scheduler.core.model.decisions import Verdict

INTERNAL_ERROR = "InternalError"
ERROR_CHARACTERS = 200
"""Characters of an error's own words that are passed on; the log has all of it."""


def internal_error(doing: str, error: Exception) -> Verdict:
    """Return what to say of whatever was being done when an exception came up."""
    words = " ".join(f"{type(error).__name__}: {error}".split())[:ERROR_CHARACTERS]
    return Verdict(
        INTERNAL_ERROR,
        f"the scheduler failed while {doing} ({words}); everything else goes on, and this is tried "
        "again when it changes; please report it with the scheduler's log",
    )
