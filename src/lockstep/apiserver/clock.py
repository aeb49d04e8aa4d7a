"""Times as the API writes them."""

from __future__ import annotations

from datetime import UTC, datetime


def timestamp(seconds: float) -> str:
    """Return a ``metav1.Time``: UTC in whole seconds."""
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def seconds(text: str) -> float:
    """Return the Unix time of a ``metav1.Time`` or ``MicroTime``."""
    return datetime.fromisoformat(text).timestamp()
