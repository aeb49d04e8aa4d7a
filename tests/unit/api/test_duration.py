"""Durations are read and said as people write them."""

import re

import pytest

from lockstep.api import duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("2h", 7200), ("1h30m", 5400), ("1d", 86400), ("250ms", 0.25), ("1.5h", 5400)],
)
def test_durations(text: str, seconds: float) -> None:
    assert duration.parse(text) == seconds
    assert re.match(duration.PATTERN, text)


@pytest.mark.parametrize("text", ["", "2", "h", "2 h", "1h-30m", "2weeks", "1hm"])
def test_what_is_no_duration_is_refused_with_an_example(text: str) -> None:
    assert not re.match(duration.PATTERN, text)
    with pytest.raises(ValueError, match="is not a duration; write one such as"):
        duration.parse(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (0.9, "0s"),
        (45, "45s"),
        (200, "3m20s"),
        (7200, "2h"),
        (187200, "2d4h"),
        (3605, "1h"),
    ],
)
def test_durations_are_shown_in_two_units_at_most(seconds: float, text: str) -> None:
    assert duration.show(seconds) == text
