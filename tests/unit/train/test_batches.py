"""Each sample comes once an epoch, on whatever number of ranks."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import examples

if find_spec("torch") is None:
    pytest.skip("needs torch (the train extra)", allow_module_level=True)

from lockstep.train.batches import Batches


def on_ranks(size: int, samples: int, state: Any = None, **given: Any) -> list[Batches]:
    """Return the batches of each of *size* ranks, gone on from *state*."""
    made = []
    for rank in range(size):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("RANK", str(rank))
            patch.setenv("WORLD_SIZE", str(size))
            made.append(Batches(samples, **given))
    for one in made if state is not None else []:
        one.load_state_dict(state)
    return made


def steps(ranks: list[Batches], count: int) -> list[int]:
    """Let all ranks do *count* steps; return the samples that they took."""
    taken: list[int] = []
    readers = [iter(one) for one in ranks]
    for _ in range(count):
        parts = []
        for i, one in enumerate(ranks):
            found = next(readers[i], None)
            if found is None:
                readers[i] = iter(one)
                found = next(readers[i])
            parts.append(found)
        # In the order of the line that they share.
        taken += [part[i] for i in range(len(parts[0])) for part in parts if i < len(part)]
        for one in ranks:
            one.stepped()
    return taken


@settings(max_examples=examples(60), deadline=None)
@given(
    samples=st.integers(1, 60),
    batch=st.integers(4, 13),
    sizes=st.lists(st.integers(1, 4), min_size=1, max_size=6),
    data=st.data(),
)
def test_each_sample_comes_once_an_epoch(
    samples: int, batch: int, sizes: list[int], data: st.DataObject
) -> None:
    taken: list[int] = []
    state = None
    for size in sizes:
        ranks = on_ranks(size, samples, state, batch=batch, seed=3)
        taken += steps(ranks, data.draw(st.integers(0, 9)))
        (state,) = {str(one.state_dict()): one.state_dict() for one in ranks}.values()
    for start in range(0, len(taken) - samples + 1, samples):
        assert sorted(taken[start : start + samples]) == list(range(samples))


def test_four_two_three_four_ranks() -> None:
    state, taken = None, []
    for size in (4, 2, 3, 4):
        ranks = on_ranks(size, 48, state, batch=12)
        taken += steps(ranks, 2)
        state = ranks[0].state_dict()
    assert sorted(taken[:48]) == sorted(taken[48:]) == list(range(48))
    assert taken[:48] != taken[48:]


def test_what_was_read_ahead_and_not_done_comes_again() -> None:
    (one,) = on_ranks(1, 10, batch=2)
    reader = iter(one)
    ahead = [next(reader) for _ in range(3)]
    one.stepped()
    (again,) = on_ranks(1, 10, one.state_dict(), batch=2)
    assert next(iter(again)) == ahead[1]
    assert len(again) == 4


@pytest.mark.parametrize(
    ("given", "scale"), [({"batch": 8}, 1.0), ({"per_rank": 4}, 2.0)], ids=["batch", "per rank"]
)
def test_the_learning_rate_follows_the_whole_batch(given: dict[str, int], scale: float) -> None:
    two = on_ranks(2, 100, **given)
    four = on_ranks(4, 100, two[0].state_dict(), **given)
    assert (two[0].scale, four[0].scale) == (1.0, scale)


def test_weights_make_the_mean_exact() -> None:
    assert sum(one.weight for one in on_ranks(3, 100, batch=7)) == pytest.approx(3)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "either batch"),
        ({"batch": 2, "per_rank": 1}, "either batch"),
        ({"batch": 2}, "a batch of 2 leaves some of 3 ranks without a sample"),
    ],
)
def test_a_batch_that_cannot_be_shared_is_refused(given: dict[str, int], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        on_ranks(3, 10, **given)


def test_other_samples_are_refused() -> None:
    with pytest.raises(ValueError, match="samples=10 and the program 11"):
        on_ranks(1, 11, on_ranks(1, 10, batch=2)[0].state_dict(), batch=2)
