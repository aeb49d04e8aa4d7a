"""Times as the API writes them (``metav1.Time``: UTC, whole seconds)."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import Annotated

from msgspec import Meta

PATTERN = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$"
Time = Annotated[str, Meta(pattern=PATTERN)]
"""A time that others than Lockstep write."""


LAST = 253_402_300_799
"""The last second that can be written: the year 9999 ends."""


def show(seconds: float) -> str:
    """Return the Unix time *seconds* as RFC 3339, rounded down to a second, at most ``LAST``."""
    return _show(int(min(seconds, LAST)))


@lru_cache(maxsize=512)
def _show(seconds: int) -> str:
    # Statuses are written in bursts, with the same second in several places each.
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse(text: str) -> float:
    """Return the Unix time of an RFC 3339 *text*.

    Raises:
        ValueError: when it is not one.
    """
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:  # another moment on every machine
        raise ValueError(f"{text!r} names no time zone")
    return moment.timestamp()


def read(text: str | None) -> float | None:
    """Return the Unix time that a text from outside states; None where it is no time."""
    try:
        return parse(text) if text else None
    except ValueError:
        return None
