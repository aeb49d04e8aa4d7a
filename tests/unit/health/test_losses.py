"""Losses that are no numbers, and spikes."""

from __future__ import annotations

import math

import pytest

from lockstep.api.rendezvous import LossFigures
from lockstep.health.core.losses import reported
from lockstep.health.core.rank_figures import NONE, busy, created, ends, losses

FLAT = [2.0 + 0.01 * (step % 5) for step in range(40)]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([], {}),
        ([NONE] * 3, {}),
        (FLAT, {"last": 2.04}),
        ([*FLAT, math.nan, 3.0], {"bad": 41, "last": 3.0}),
        ([*FLAT, 9.0, 2.0], {"last": 2.0}),
        ([*FLAT, 9.0, 9.0, 9.5], {"high": 43, "usual": 2.02, "last": 9.5}),
        ([*FLAT, 9.0, 9.0, 9.5, 2.0], {"usual": 2.02, "last": 2.0}),
    ],
    ids=["none", "unknown", "usual", "no number", "a bad batch", "a spike", "over"],
)
def test_a_rank_tells_how_its_loss_goes(values: list[float], said: dict[str, float]) -> None:
    assert losses(1, values) == said


def test_the_rank_whose_loss_was_first_no_number_is_named() -> None:
    told = {rank: LossFigures(bad=7 if rank == 2 else 8) for rank in range(4)}
    assert reported(told, dict.fromkeys(range(4), 6)) is None, "not all have come to it"
    found = reported(told, dict.fromkeys(range(4), 9))
    assert found is not None and found.place.ranks == [2]
    assert (found.class_, found.action.partition(":")[0]) == ("hardware", "pause_job")
    assert found.confidence < 0.8, "not sure enough to be acted upon without being asked"


def test_no_number_on_all_ranks_is_the_users() -> None:
    found = reported(dict.fromkeys(range(4), LossFigures(bad=7)), dict.fromkeys(range(4), 9))
    assert found is not None
    assert (found.class_, found.action) == ("user", "stop_and_tell_user")


def test_a_spike_of_most_ranks_is_the_jobs() -> None:
    high, flat = LossFigures(last=9.0, usual=2.0, high=43), LossFigures(last=2.0)
    assert reported({0: high, 1: flat}, {0: 50, 1: 50}) is None
    found = reported({0: high, 1: high, 2: flat}, dict.fromkeys(range(3), 50))
    assert found is not None and "rose to 9 from 2" in found.cause
    assert found.action == "observe"


def test_a_rank_is_busy_until_a_steps_first_collective() -> None:
    step_ends = ends(103.0, [1.0, 1.0, 1.0])
    assert step_ends == [100.0, 101.0, 102.0, 103.0]
    entries = [
        {"time_created_ns": int((wall - 50) * 1e9), "profiling_name": name}
        for wall, name in [
            (150.25, "gloo:all_reduce"),
            (150.5, "gloo:all_reduce"),
            (151.1, "gloo:broadcast"),
            (151.75, "gloo:all_reduce"),
        ]
    ]
    calls = created({"entries": [*entries, "nonsense", {}]}, 0.0)
    assert busy(step_ends, calls) == [0.25, 0.75], "a step without a collective tells nothing"
