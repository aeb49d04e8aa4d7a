"""Times as the API writes them."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache


def timestamp(seconds: float) -> str:
    """Return a ``metav1.Time``: UTC in whole seconds."""
    return _text(int(seconds))


@lru_cache(maxsize=64)
def _text(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def seconds(text: str) -> float:
    """Return the Unix time of a ``metav1.Time`` or ``MicroTime``."""
    return datetime.fromisoformat(text).timestamp()
