"""The sampler and the files that a torch DataLoader takes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.data.client import EpochSampler, Files


@given(st.integers(1, 100), st.integers(1, 6), st.integers(1, 6), st.data())
def test_a_changed_world_reads_each_sample_once(
    count: int, before: int, after: int, data: st.DataObject
) -> None:
    steps = data.draw(st.integers(0, count // before))
    read, states = [], []
    for rank in range(before):
        sampler = EpochSampler(count, seed=3, rank=rank, world=before)
        order = iter(sampler)
        read += [next(order) for _ in range(steps)]
        sampler.taken(steps)
        states.append(sampler.state_dict())
    assert all(one == states[0] for one in states)
    for rank in range(after):
        sampler = EpochSampler(count, seed=3, rank=rank, world=after)
        sampler.load_state_dict(states[0])
        read += list(sampler)
    assert sorted(read) == list(range(count))


def test_each_pass_is_the_next_epoch() -> None:
    sampler = EpochSampler(50, seed=1)
    first, second = list(sampler), list(sampler)
    assert sorted(first) == sorted(second) == list(range(50))
    assert first != second
    assert sampler.state_dict() == {"epoch": 1, "position": 50}


def test_even_ranks_have_as_many_samples() -> None:
    lengths = {len(EpochSampler(10, rank=one, world=4, even=True)) for one in range(4)}
    assert lengths == {2}


def test_a_rank_outside_the_world_is_refused() -> None:
    with pytest.raises(ValueError, match="rank is 4"):
        EpochSampler(10, rank=4, world=4)


def test_files_are_samples_in_the_order_of_their_paths(tmp_path: Path) -> None:
    for name in ("b.txt", "a/z.txt", "a.txt", "note.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    files = Files(tmp_path, suffix=".txt", decode=bytes.decode)
    assert [files[index] for index in range(len(files))] == ["a.txt", "a/z.txt", "b.txt"]
    assert len(Files(tmp_path, "a")) == 1


@pytest.mark.torch
def test_the_example_reads_each_file_once_an_epoch(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="needs the train extra")
    import runpy

    for index in range(20):
        (tmp_path / f"{index}").write_bytes(bytes(index))
    example = runpy.run_path("examples/data/read.py")
    assert example["main"](str(tmp_path)) == 2 * sum(range(20))
