"""Decisions are those on record: a change of structure changes none of them.

Where one changes on purpose: ``python -m tests.support.recorded``, in a commit of its own.
"""

from __future__ import annotations

import pytest
from bench.support import openb
from tests.support import recorded

STEP = 19
"""Each so many-th run is played here; all are under the marker."""
BLOCK = 100
HINT = "python -m tests.support.recorded --show SEED prints a run"


def differing(seeds: range) -> dict[int, str]:
    kept = recorded.kept()
    found = {seed: recorded.digests(seed) for seed in seeds}
    return {seed: one for seed, one in found.items() if one != kept[seed]}


@pytest.mark.parametrize("first", range(0, 10 * STEP, STEP))
def test_a_sample_of_the_recorded_runs_decides_the_same(first):
    assert differing(range(first, recorded.RUNS, 10 * STEP)) == {}, HINT


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("first", range(0, recorded.RUNS, BLOCK))
def test_all_recorded_runs_decide_the_same(first):
    assert differing(range(first, first + BLOCK)) == {}, HINT


def of_list(name: str) -> None:
    if openb.directory() is None:
        pytest.skip(openb.ABSENT)
    assert recorded.list_digest(name) == recorded.kept_lists()[name]


def test_a_public_list_is_placed_as_recorded():
    of_list("default")


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", recorded.LISTS)
def test_all_public_lists_are_placed_as_recorded(name):
    of_list(name)
