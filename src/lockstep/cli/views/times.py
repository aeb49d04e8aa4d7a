"""Times of objects as people read them."""

from __future__ import annotations

from datetime import datetime

from lockstep.api import duration


def seconds_since(stamp: str | None, now: datetime) -> float | None:
    """Return the seconds from the RFC 3339 time *stamp* to *now*; None without one."""
    if not stamp:
        return None
    return (now - datetime.fromisoformat(stamp)).total_seconds()


def ago(stamp: str | None, now: datetime) -> str:
    """Return how long ago *stamp* was, as ``3m20s``; empty without one."""
    seconds = seconds_since(stamp, now)
    return "" if seconds is None else duration.show(seconds)


def between(start: str | None, end: str | None, now: datetime) -> str:
    """Return how long something took, or has taken so far; empty when it has not started."""
    if not start:
        return ""
    return ago(start, datetime.fromisoformat(end) if end else now)
