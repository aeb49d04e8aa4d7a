"""Times of objects as people read them; ``now`` is Unix time."""

from __future__ import annotations

from lockstep.api import duration, timestamp


def ago(stamp: str | None, now: float) -> str:
    """Return how long ago the time *stamp* was, as ``3m20s``; empty without one."""
    return duration.show(now - timestamp.parse(stamp)) if stamp else ""


def between(start: str | None, end: str | None, now: float) -> str:
    """Return how long something took, or has taken so far; empty when it has not started."""
    return ago(start, timestamp.parse(end) if end else now)


def until(stamp: str, now: float) -> str:
    """Return in how long the time *stamp* is: ``5m20s``, or ``now`` where it has come."""
    left = timestamp.parse(stamp) - now
    return duration.show(left) if left >= 1 else "now"
