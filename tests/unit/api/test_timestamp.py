"""Times are read where they are times, and mean the same moment on every machine."""

from __future__ import annotations

import pytest

from lockstep.api import timestamp


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1970-01-01T00:00:05Z", 5.0),
        ("1970-01-01T00:00:05.250000Z", 5.25),
        ("1970-01-01T02:00:05+02:00", 5.0),
    ],
)
def test_times(text: str, seconds: float) -> None:
    assert timestamp.parse(text) == timestamp.read(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "soon", "2026-99-01T00:00:00Z", "2026-03-01", "2026-03-01T10:00:00"]
)
def test_what_is_no_time_says_nothing(text: str) -> None:
    assert timestamp.read(text) is None
    with pytest.raises(ValueError):
        timestamp.parse(text)


def test_nothing_says_nothing() -> None:
    assert timestamp.read(None) is None
