"""How long a container that ended waits before it runs again."""

from __future__ import annotations

FIRST = 10.0
LONGEST = 300.0
FORGET_AFTER = 600.0


def after(waited: float | None, ran_for: float) -> float:
    """Return the wait after a run of *ran_for* seconds that had *waited* before it began.

    The first run has waited for nothing (none), and its restart follows at once; then 10 s,
    doubling up to 5 min. A run of 10 minutes clears the record.
    """
    if waited is None or ran_for >= FORGET_AFTER:
        return 0.0
    if waited <= 0.0:
        return FIRST
    return min(waited * 2, LONGEST)
