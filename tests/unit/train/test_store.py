"""Copies on disk: whole or not there, the newest few, and never another's."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from lockstep.train.memory import Memory
from lockstep.train.saving import steps_between
from lockstep.train.segment import Segment
from lockstep.train.store import KEPT, NotStored, Store

SIZE = 3 * (1 << 20) - 17
SLOT = 4096 + SIZE
RANKS = 4


def write(segment: Segment, step: int) -> bytes:
    """Make the copy of *step* in the segment; return its bytes."""
    slot = segment.begin()
    start = segment.start(slot)
    data = bytes((i + step) % 251 for i in range(SIZE))
    segment.map[start : start + 30] = b"t" * 10 + b"p" * 20
    segment.map[start + 4096 : start + 4096 + SIZE] = data
    segment.end(slot, step, 1, (10, 20, 4096, SIZE))
    return data


def save(store: Store, segment: Segment, step: int, rank: int = 3) -> bytes:
    data = write(segment, step)
    [whole] = [one for one in segment.whole() if one.step == step]
    assert store.save(rank, RANKS, segment, whole)
    return data


@pytest.fixture
def segment() -> Segment:
    return Memory().segment(0, SLOT, 42)


def test_what_was_saved_comes_back_in_another_life(tmp_path: Path, segment: Segment) -> None:
    data = save(Store(tmp_path / "made"), segment, 7)
    memory = Memory()
    Store(tmp_path / "made").load(3, RANKS, 7, partial(memory.segment, 0))
    found, whole = memory.newest(0)[0]
    start = found.start(whole.slot)
    assert (whole.step, found.layout) == (7, 42)
    assert found.read(start, 30) == b"t" * 10 + b"p" * 20
    assert found.read(start + whole.data, whole.size) == data


def test_the_newest_few_are_kept(tmp_path: Path, segment: Segment) -> None:
    store = Store(tmp_path)
    for step in range(1, KEPT + 3):
        save(store, segment, step)
    assert store.steps(3, RANKS) == [5, 4, 3]
    assert len(list(tmp_path.glob("*.copy"))) == KEPT
    assert store.steps(2, RANKS) == []
    assert store.steps(3, RANKS + 1) == []


@pytest.mark.parametrize("at", [5, 200, SIZE // 2, -1])
def test_a_copy_that_was_changed_never_counts(tmp_path: Path, segment: Segment, at: int) -> None:
    store = Store(tmp_path)
    save(store, segment, 7)
    [file] = tmp_path.glob("*.copy")
    data = bytearray(file.read_bytes())
    data[at] ^= 1
    file.write_bytes(data)
    memory = Memory()
    with pytest.raises(NotStored):
        store.load(3, RANKS, 7, partial(memory.segment, 0))
    assert memory.newest(0) == []


def test_a_copy_that_was_cut_is_not_offered(tmp_path: Path, segment: Segment) -> None:
    store = Store(tmp_path)
    save(store, segment, 7)
    [file] = tmp_path.glob("*.copy")
    file.write_bytes(file.read_bytes()[:-1])
    assert store.steps(3, RANKS) == []


@pytest.mark.parametrize("index", ["", "[", "{}", '[{"file": "../x", "step": 1, "size": 4}]'])
def test_an_index_that_cannot_be_read_says_nothing(tmp_path: Path, index: str) -> None:
    (tmp_path / "rank-00003.json").write_text(index)
    assert Store(tmp_path).steps(3, RANKS) == []


def test_a_directory_that_cannot_be_written_is_told(tmp_path: Path, segment: Segment) -> None:
    (tmp_path / "file").write_text("in the way")
    store = Store(tmp_path / "file" / "below")
    write(segment, 7)
    assert not store.save(3, RANKS, segment, segment.whole()[0])
    assert "step 7 of rank 3 is not saved" in store.problem


@pytest.mark.parametrize(
    ("rate", "interval", "expected"),
    [(1.0, 60.0, 64), (1.1, 60.0, 128), (10.0, 60.0, 1024), (0.01, 60.0, 1), (100.0, 0.001, 1)],
)
def test_saves_are_a_power_of_two_steps_apart(rate: float, interval: float, expected: int) -> None:
    assert steps_between(rate, interval) == expected
