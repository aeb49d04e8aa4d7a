"""A launcher keeps the parts of another pod's ranks, and hands them to the one that lost them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from lockstep.train.memory import Memory
from lockstep.train.mirror import Mirror, Other, other
from lockstep.train.peers import OWN, Asked, NoCopy, Peers, fetch
from lockstep.train.place import Place
from lockstep.train.segment import Split

KEY = b"the key of the job"
SLOT = 4 * 4096


def place(node: int) -> Place:
    return Place("default", f"w-{node}", "u", "127.0.0.1", "w-world", node, 2, "s:1", Path())


def world(pods: int, **more: Any) -> dict[str, Any]:
    parts = [{"role": "w", "pods": pods, "processes": 2}]
    return {"phase": "Run", "parts": parts, "peers": [f"h{i}:1" for i in range(pods)], **more}


@pytest.mark.parametrize("pods", [2, 3, 4, 7])
def test_every_launcher_is_kept_by_exactly_one_other(pods: int) -> None:
    found = [other(place(node), world(pods)) for node in range(pods)]
    assert all(one is not None for one in found)
    assert sorted(one.address for one in found if one) == [f"h{i}:1" for i in range(pods)]
    for node, one in enumerate(found):
        assert one is not None
        assert one.address != f"h{node}:1"
        assert (one.ranks.start, len(one.ranks), one.size) == (2 * int(one.address[1]), 2, 2 * pods)


@pytest.mark.parametrize("more", [{"peers": []}, {"peers": ["h0:1"]}, {"phase": "Gather"}])
def test_nothing_is_kept_where_nothing_is_apart(more: dict[str, Any]) -> None:
    assert other(place(0), world(2, **more)) is None


def write(memory: Memory, local: int, rank: int, step: int) -> None:
    if not memory.files(local):
        memory.segment(local, SLOT, 42)
        memory.belongs(local, rank, 4, True)
    segment = memory._held[local][0][1]
    slot = segment.begin()
    start = segment.start(slot)
    segment.map[start : start + 40] = bytes([rank, step]) * 20
    segment.end(slot, step, 1, (10, 20, 30, 10))


def read(memory: Memory, step: int, rank: int) -> bytes | None:
    found = memory.find(step, rank)
    if found is None:
        return None
    segment, whole = found
    return segment.read(segment.start(whole.slot), whole.data + whole.size)


@pytest.fixture
def held() -> Iterator[tuple[Memory, Peers]]:
    """Return the memory of ranks 2 and 3 of 4, and who hands it out."""
    memory = Memory()
    peers = Peers("127.0.0.1", KEY, memory)
    threading.Thread(target=peers.serve, daemon=True).start()
    yield memory, peers
    peers.close()


def test_the_last_two_copies_of_each_rank_are_kept(
    held: tuple[Memory, Peers],
) -> None:
    theirs, peers = held
    mine = Memory()
    mirror = Mirror(mine, KEY)
    there = Other(peers.address, range(2, 4), 4)
    for step in (5, 6, 7):
        write(theirs, 0, 2, step)
        write(theirs, 1, 3, step)
        assert mirror.fetch(there)
        assert not mirror.fetch(there), "nothing new"
    kept = {(one["rank"], one["step"]) for one in mine.snapshots(1) if one["local"] == -1}
    assert kept == {(2, 6), (2, 7), (3, 6), (3, 7)}
    giving = Peers("127.0.0.1", KEY, mine)
    threading.Thread(target=giving.serve, daemon=True).start()
    fresh = Memory()
    for local in (0, 1):
        fetch(giving.address, KEY, Asked(6, 2 + local), partial(fresh.segment, local))
        fresh.belongs(local, 2 + local, 4, True)
    assert read(fresh, 6, 2) == bytes([2, 6]) * 20
    assert read(fresh, 6, 3) == bytes([3, 6]) * 20
    with pytest.raises(NoCopy):
        fetch(giving.address, KEY, Asked(6, 1), partial(fresh.segment, 0))
    giving.close()


OWN_BYTES = 40
"""Of table, plain values and own tensors; then come as many of what all ranks share."""


def share(memory: Memory, rank: int, step: int) -> None:
    """Keep a copy of *step* whose second half is the same in all ranks."""
    if not memory.files(0):
        memory.segment(0, SLOT, 42, Split(OWN_BYTES, 17))
        memory.belongs(0, rank, 4, False)
    segment = memory._held[0][0][1]
    slot = segment.begin()
    start = segment.start(slot)
    both = bytes([rank, step]) * (OWN_BYTES // 2) + bytes([99, step]) * (OWN_BYTES // 2)
    segment.map[start : start + 2 * OWN_BYTES] = both
    segment.end(slot, step, 1, (10, 20, 30, 2 * OWN_BYTES - 30))


def test_what_all_ranks_share_is_kept_once_and_comes_back(
    held: tuple[Memory, Peers],
) -> None:
    theirs, peers = held
    keeping, third = Memory(), Memory()
    for step in (5, 6):
        share(theirs, 2, step)
        share(third, 1, step)
        assert Mirror(keeping, KEY).fetch(Other(peers.address, range(2, 3), 4, OWN))
    kept = [one for one in keeping.snapshots(1) if one["local"] == -1]
    assert [(one["rank"], one["step"], one["own"]) for one in kept] == [(2, 6, True), (2, 5, True)]
    assert all(one["bytes"] == OWN_BYTES - 30 for one in kept)
    serving = [Peers("127.0.0.1", KEY, one) for one in (keeping, third)]
    for one in serving:
        threading.Thread(target=one.serve, daemon=True).start()
    fresh = Memory()
    make = partial(fresh.segment, 0)
    with pytest.raises(NoCopy, match="what all ranks share is missing"):
        fetch(serving[0].address, KEY, Asked(6, 2), make, others=[serving[0].address])
    assert fresh.find(6) is None
    fetch(serving[0].address, KEY, Asked(6, 2), make, others=[one.address for one in serving])
    fresh.belongs(0, 2, 4, False)
    assert read(fresh, 6, 2) == read(theirs, 6, 2)
    for one in serving:
        one.close()


def test_copies_of_another_number_of_ranks_are_not_mixed(held: tuple[Memory, Peers]) -> None:
    theirs, peers = held
    keeping = Memory()
    for step, size in ((5, 4), (6, 3)):
        write(theirs, 0, 2, step)
        assert Mirror(keeping, KEY).fetch(Other(peers.address, range(2, 3), size))
    kept = [(one["step"], one["size"]) for one in keeping.snapshots(1) if one["local"] == -1]
    assert kept == [(6, 3)]


def test_a_copy_that_changed_in_memory_is_never_handed_over(
    held: tuple[Memory, Peers], capsys: pytest.CaptureFixture[str]
) -> None:
    theirs, peers = held
    keeping, fresh = Memory(), Memory()
    for step in (5, 6):
        write(theirs, 0, 2, step)
        assert Mirror(keeping, KEY).fetch(Other(peers.address, range(2, 3), 4))
    segment, whole = keeping.find(6, 2) or pytest.fail("it is kept")
    segment.map[segment.start(whole.slot) + 7] ^= 1
    serving = Peers("127.0.0.1", KEY, keeping)
    threading.Thread(target=serving.serve, daemon=True).start()
    with pytest.raises(NoCopy):
        fetch(serving.address, KEY, Asked(6, 2), partial(fresh.segment, 0))
    assert "block 0 of step 6, kept for another pod, has changed" in capsys.readouterr().err
    assert keeping.peer_step(2) == 5, "the older copy still counts"
    fetch(serving.address, KEY, Asked(5, 2), partial(fresh.segment, 0))
    fresh.belongs(0, 2, 4, False)
    assert read(fresh, 5, 2) == bytes([2, 5]) * 20
    serving.close()


def test_what_is_newer_than_the_step_of_all_is_forgotten(held: tuple[Memory, Peers]) -> None:
    theirs, peers = held
    mine = Memory()
    for step in (5, 6):
        write(theirs, 0, 2, step)
        Mirror(mine, KEY).fetch(Other(peers.address, range(2, 3), 4))
    mine.forget_after(5)
    assert mine.peer_step(2) == 5
    mine.keep_only([1])
    assert mine.peer_step(2) == -1
