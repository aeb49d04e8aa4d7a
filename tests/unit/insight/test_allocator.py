"""The model of the caching allocator reserves what PyTorch's own would."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.insight.memory.allocator import Event, replay

MIB = 1 << 20

CASES: list[tuple[list[Event], int, int]] = [
    ([(1, 1)], 512, 2 * MIB),
    ([(1, MIB), (2, MIB)], 2 * MIB, 2 * MIB),
    ([(1, MIB + 1)], MIB + 512, 20 * MIB),
    ([(1, 5 * MIB), (2, 5 * MIB)], 10 * MIB, 20 * MIB),
    # The rest of its segment is not worth a block.
    ([(1, 11 * MIB + 1)], 12 * MIB, 12 * MIB),
    # What was freed is taken again.
    ([(1, 30 * MIB), (1, 0), (2, 30 * MIB)], 30 * MIB, 30 * MIB),
    # Freed neighbours are one block.
    ([(1, 8 * MIB), (2, 8 * MIB), (1, 0), (2, 0), (3, 16 * MIB)], 16 * MIB, 20 * MIB),
    # Fragmented: neither of two free blocks holds what they would together.
    ([(1, 12 * MIB), (2, 12 * MIB), (1, 0), (2, 0), (3, 24 * MIB)], 24 * MIB, 48 * MIB),
]


@pytest.mark.parametrize(("events", "allocated", "reserved"), CASES)
def test_segments_follow_the_rules_of_the_allocator(
    events: list[Event], allocated: int, reserved: int
) -> None:
    found = replay(events)
    assert (found.allocated, found.reserved) == (allocated, reserved)


sizes = st.integers(1, 64 * MIB)


@given(st.lists(st.tuples(st.integers(0, 20), sizes, st.booleans()), max_size=60))
def test_what_is_reserved_covers_what_is_allocated(given_: list[tuple[int, int, bool]]) -> None:
    events: list[Event] = []
    held: dict[int, int] = {}
    most = 0
    for key, size, _ in given_:
        if key in held:
            del held[key]
            events.append((key, 0))
        else:
            held[key] = size
            events.append((key, size))
        most = max(most, sum(held.values()))
    found = replay(events)
    assert most <= found.allocated <= found.reserved
