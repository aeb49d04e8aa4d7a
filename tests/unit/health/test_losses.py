"""Losses that are no numbers, spikes, and states that differ."""

from __future__ import annotations

import math

import pytest

from lockstep.health.core.losses import Losses, differing


def usual(job: Losses, steps: int = 40) -> None:
    for step in range(steps):
        assert job.step(step, {r: 2.0 + 0.01 * ((step * 7 + r) % 5) for r in range(4)}) is None


def test_no_number_on_all_ranks_is_the_users() -> None:
    told = Losses().step(7, dict.fromkeys(range(4), math.nan))
    assert told is not None
    assert (told.class_, told.action) == ("user", "stop_and_tell_user")


def test_no_number_on_one_rank_is_held_for_a_replay() -> None:
    told = Losses().step(7, {0: 2.0, 1: 2.0, 2: math.inf, 3: 2.1})
    assert told is not None
    assert (told.class_, told.place.ranks) == ("hardware", [2])
    assert told.action.startswith("pause_job")
    assert told.confidence < 0.8, "not sure enough to be acted upon without being asked"


def test_a_spike_that_lasts_is_told_and_a_bad_batch_is_not() -> None:
    job = Losses()
    usual(job)
    assert job.step(41, {0: 9.0}) is None
    usual(job, 3)
    told = [job.step(50 + step, {0: 9.0}) for step in range(3)]
    assert told[:2] == [None, None]
    assert told[2] is not None and told[2].action == "observe"


@pytest.mark.parametrize(
    ("sums", "ranks"),
    [
        ({0: 5, 1: 5, 2: 5}, None),
        ({0: 5, 1: 6, 2: 5}, [1]),
        ({0: 5, 1: 6}, []),
    ],
    ids=["same", "one differs", "no majority"],
)
def test_states_that_differ_name_the_few(sums: dict[int, int], ranks: list[int] | None) -> None:
    told = differing(sums, 3)
    assert (told.place.ranks if told is not None else None) == ranks
