from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.cli.up.restart import LONGEST_DELAY, STEADY, after_end, how_it_ended

SHORT = st.floats(0, STEADY, exclude_max=True)


def delays(runs: list[float]) -> list[float]:
    short, seen = 0, []
    for run in runs:
        verdict = after_end(short, run)
        short = verdict.short_runs
        seen.append(verdict.delay)
    return seen


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        ([100.0], [0.0]),
        ([0.1], [0.0]),
        ([0.1, 0.1, 0.1, 0.1], [0.0, 0.1, 0.2, 0.4]),
        ([0.1, 0.1, 60.0, 0.1], [0.0, 0.1, 0.0, 0.1]),
        ([0.1] * 10, [0.0, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, LONGEST_DELAY]),
    ],
)
def test_a_part_that_keeps_ending_waits_longer_each_time(
    runs: list[float], expected: list[float]
) -> None:
    assert delays(runs) == pytest.approx(expected)


@given(st.lists(SHORT, max_size=40), st.floats(STEADY, 1e6))
def test_after_a_steady_run_the_next_start_is_immediate(short: list[float], steady: float) -> None:
    assert delays([*short, steady])[-1] == 0.0


@given(st.lists(SHORT, min_size=1, max_size=80))
def test_delays_of_short_runs_grow_and_stay_bounded(runs: list[float]) -> None:
    seen = delays(runs)
    assert seen == sorted(seen)
    assert max(seen) <= LONGEST_DELAY


@pytest.mark.parametrize(
    ("ends", "looping"), [(1, False), (2, False), (3, True), (4, True), (30, True)]
)
def test_a_crash_loop_begins_at_the_third_short_run(ends: int, looping: bool) -> None:
    assert after_end(ends - 1, 0.0).looping is looping


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (0, "exit code 0"),
        (137, "exit code 137"),
        (-9, "killed by SIGKILL"),
        (-15, "killed by SIGTERM"),
        (-250, "killed by signal 250"),
    ],
)
def test_an_exit_code_in_words(code: int, words: str) -> None:
    assert how_it_ended(code) == words
