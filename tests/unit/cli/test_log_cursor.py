from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.cli.log_lines import Cursor


@given(st.lists(st.integers(0, 5)), st.integers(0, 60), st.integers(0, 60))
def test_a_broken_stream_loses_and_doubles_nothing(
    gaps: list[int], first: int, second: int
) -> None:
    """Each connection sends the log from the cursor's time on, and breaks at any byte."""
    times, now = [], 10
    for gap in gaps:
        now += gap
        times.append(now)
    lines = [f"{time} line {number}\n".encode() for number, time in enumerate(times)]
    cursor, printed = Cursor(timestamps=False), b""
    for cut in (first, second, None):
        cursor.reconnect()
        sent = b"".join(line for line in lines if line.split(b" ")[0] >= cursor.time)
        printed += cursor.feed(sent[:cut])
    assert printed == b"".join(line.split(b" ", 1)[1] for line in lines)


@pytest.mark.parametrize(("timestamps", "shown"), [(True, b"10 a\n"), (False, b"a\n")])
def test_times_are_shown_when_asked_for(timestamps: bool, shown: bytes) -> None:
    assert Cursor(timestamps=timestamps).feed(b"10 a\n") == shown
