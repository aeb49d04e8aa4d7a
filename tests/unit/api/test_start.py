"""When a pod starts, behind why it waits: what is written is read as it was, and nothing else."""

from __future__ import annotations

import pytest

from lockstep.api.start import Start, split_start, with_start
from lockstep.api.timestamp import LAST, show

WHYS = (
    "1 pod short",
    "aligned by ; estimated start: soon",
    "aligned by ; estimated start: 2026-99-01T00:00:00Z",
    "aligned by ; no estimated start, not before long",
)
TOO_FAR = "looking further ahead: too long"
STARTS = (
    None,
    Start(show(5000.0)),
    Start(why="gang x has no expected run time"),
    Start(why=TOO_FAR, not_before=show(9000.0)),
)


@pytest.mark.parametrize("why", WHYS)
@pytest.mark.parametrize("start", STARTS)
def test_what_is_written_is_read(why: str, start: Start | None) -> None:
    assert split_start(with_start(why, start)) == (why, start)


def test_times_too_far_to_write_are_the_end_of_time() -> None:
    assert show(1e300) == show(LAST) == "9999-12-31T23:59:59Z"
