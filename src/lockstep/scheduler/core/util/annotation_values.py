"""What objects say of times and ranks in words that any user may have written."""

from __future__ import annotations

from math import isfinite

from lockstep.api import duration, timestamp
from lockstep.api.core import Pod


def scheduled(pod: Pod) -> float | None:
    """Return when a pod that has not started yet got its node; None where that is not said."""
    if not pod.spec.node_name or pod.status.start_time:
        return None
    said = (c for c in pod.status.conditions if c.type == "PodScheduled" and c.status == "True")
    return next((timestamp.read(condition.last_transition_time) for condition in said), None)


def seconds(text: str) -> float | None:
    """Return a time span that was stated in seconds; None where it is none."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if isfinite(number) and number >= 0 else None


def span(text: str) -> float | None:
    """Return a time span such as ``2h`` in seconds; None where it is none."""
    try:
        return duration.parse(text)
    except ValueError:
        return None


def rank(text: str) -> int | None:
    """Return a rank that was stated; None where it is none."""
    return int(text) if text.isascii() and text.isdigit() else None
