"""What a rank wrote is whole or does not count, wherever it was killed."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.train.segment import BadSegment, Segment, total

SLOT = 3 * 4096


@pytest.fixture
def fd() -> Iterator[int]:
    made = os.memfd_create("segment")
    os.ftruncate(made, total(SLOT))
    yield made
    os.close(made)


def write(segment: Segment, step: int, end: bool = True) -> int:
    slot = segment.begin()
    at = segment.start(slot) + 4096
    segment.map[at : at + 8] = step.to_bytes(8, "little")
    if end:
        segment.end(slot, step, 1, (10, 20, 4096, 8))
    return slot


def held(segment: Segment) -> list[tuple[int, int]]:
    """Return the steps of the whole copies, with what lies there."""
    return [
        (
            one.step,
            int.from_bytes(segment.read(segment.start(one.slot) + one.data, one.size), "little"),
        )
        for one in segment.whole()
    ]


def test_the_two_newest_copies_are_kept(fd: int) -> None:
    segment = Segment.fresh(fd, SLOT, 1)
    assert held(segment) == []
    for step in (1, 2, 3):
        write(segment, step)
    assert held(Segment(fd)) == [(3, 3), (2, 2)]
    assert Segment(fd).progress == 3


@given(st.lists(st.booleans(), max_size=12))
def test_a_copy_that_was_not_finished_never_counts(ends: list[bool]) -> None:
    made = os.memfd_create("segment")
    os.ftruncate(made, total(SLOT))
    segment = Segment.fresh(made, SLOT, 1)
    done: list[int] = []
    for step, end in enumerate(ends, 1):
        write(segment, step, end)
        done += [step] if end else []
        found = held(Segment(made))
        assert all(step == data for step, data in found)
        assert [step for step, _ in found][:1] == done[-1:]
    os.close(made)


@pytest.mark.parametrize("at", range(512, 512 + 52))
def test_a_flipped_byte_of_the_header_invalidates_a_copy(fd: int, at: int) -> None:
    segment = Segment.fresh(fd, SLOT, 1)
    write(segment, 7)
    segment.map[at] ^= 0x41
    assert held(segment) == []


def test_copies_newer_than_where_all_go_on_are_dropped(fd: int) -> None:
    segment = Segment.fresh(fd, SLOT, 1)
    write(segment, 7)
    write(segment, 8)
    segment.forget_after(7)
    assert held(segment) == [(7, 7)]
    write(segment, 8)
    assert held(segment) == [(8, 8), (7, 7)]
    segment.forget_after(-1)
    assert held(segment) == []


def test_foreign_memory_is_no_segment(fd: int) -> None:
    foreign = Segment(fd)
    assert foreign.whole() == []
    with pytest.raises(BadSegment):
        foreign.start(0)
