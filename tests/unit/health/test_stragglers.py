"""Slow ranks, told from noise."""

from __future__ import annotations

import numpy as np
import pytest

from lockstep.health.core.stragglers import WINDOW, Known, Slow, part, slow, verdict


def busy(steps: int, ranks: int, noise: float, seed: int = 1) -> np.ndarray:
    draw = np.random.default_rng(seed)
    return 0.5 * np.exp(draw.normal(0, noise, (steps, ranks)))


def ratios(steps: np.ndarray) -> np.ndarray:
    held: np.ndarray = steps / np.nanmedian(steps, axis=1, keepdims=True)
    return held


@pytest.mark.parametrize("noise", [0.001, 0.01, 0.03])
@pytest.mark.parametrize("ranks", [4, 64])
def test_a_rank_ten_percent_slower_is_named_within_twenty_steps(noise: float, ranks: int) -> None:
    steps = busy(20, ranks, noise)
    steps[:, 2] *= 1.10
    assert [one.rank for one in slow(ratios(steps))] == [2]


def test_noise_names_no_rank() -> None:
    steps = ratios(busy(5000, 16, 0.03))
    assert not any(slow(steps[end - WINDOW : end]) for end in range(WINDOW, 5001))


def test_a_hiccup_of_a_few_steps_is_no_straggler() -> None:
    steps = busy(60, 8, 0.01)
    steps[20:26, 3] *= 3
    assert not any(slow(ratios(steps)[end - WINDOW : end]) for end in range(WINDOW, 61))


def test_a_rank_that_tells_nothing_is_left_out() -> None:
    steps = busy(20, 6, 0.01)
    steps[:, 5] = np.nan
    steps[:, 1] *= 1.2
    assert [one.rank for one in slow(ratios(steps))] == [1]


@pytest.mark.parametrize(
    ("known", "what"),
    [
        (Known(data=4.0), "storage"),
        (Known(sending=3.0), "link"),
        (Known(neighbours=True), "host"),
        (Known(throttled="thermal"), "device"),
        (Known(throttled="thermal", neighbours=True), "device"),
        (Known(), "device"),
    ],
)
def test_what_is_slow_is_told_apart(known: Known, what: str) -> None:
    assert part(known) == what


def test_the_verdict_names_rank_node_and_how_sure() -> None:
    told = verdict(Slow(3, 0.12, 14.0), {3: Known(node="gpu-1", throttled="thermal")})
    assert (told.class_, told.action, told.place.ranks) == ("hardware", "isolate_node", [3])
    assert told.place.nodes == ["gpu-1"]
    assert "12%" in told.cause
