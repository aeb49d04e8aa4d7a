"""Waits of tests: they end with the condition, and a deadline stretches with the machine's load."""

from __future__ import annotations

import pytest
from tests.support.waiting import MOST, eventually, eventually_sync, stretched


@pytest.mark.parametrize(
    ("load", "cores", "expected"),
    [(0.0, 2, 30.0), (2.0, 2, 30.0), (4.0, 2, 60.0), (8.0, 2, 120.0), (40.0, 2, 30.0 * MOST)],
)
def test_a_deadline_stretches_with_the_load(load: float, cores: int, expected: float) -> None:
    assert stretched(30.0, load, cores) == expected


def test_a_condition_that_comes_true_is_returned() -> None:
    seen = iter([None, "", "third"])
    assert eventually_sync(lambda: next(seen)) == "third"


async def test_a_condition_that_stays_false_fails_with_its_last_value() -> None:
    with pytest.raises(AssertionError, match=r"it did not come true .* last seen: \[\]"):
        await eventually(list, 0.0, "it")
    with pytest.raises(AssertionError, match="last seen: 0"):
        eventually_sync(lambda: 0, 0.0)
