"""Seconds that jobs waited for their input."""

from __future__ import annotations

import pytest

from lockstep.data.core.waits import MOST, Waits


@pytest.mark.parametrize(
    ("notes", "expected"),
    [
        ([(0.0, ["a"]), (3.0, ["a"]), (5.0, [])], {"a": 5.0}),
        ([(2.0, ["a"]), (3.0, [])], {"a": 1.0}),
        ([(0.0, ["a", "b"]), (4.0, ["b"]), (5.0, [])], {"a": 2.0, "b": 3.0}),
        ([(9.0, ["a"]), (1.0, ["a"])], {"a": 1.0}),
        ([(0.0, []), (7.0, [])], {}),
    ],
)
def test_what_readers_wait_is_their_jobs(
    notes: list[tuple[float, list[str]]], expected: dict[str, float]
) -> None:
    waits = Waits()
    for total, jobs in notes:
        waits.note(total, jobs)
    assert waits.shown() == expected


def test_jobs_of_long_ago_are_forgotten() -> None:
    waits = Waits({"early": 1.0})
    for number in range(MOST + 1):
        waits.note(float(number), [f"job-{number}"])
        waits.note(number + 0.5, [])
    assert "early" not in waits.seconds
    assert len(waits.seconds) == MOST
