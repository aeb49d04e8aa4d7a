"""A copy comes from another launcher whole and signed, or not at all."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from functools import partial

import pytest

from lockstep.train.memory import Memory
from lockstep.train.peers import Asked, NoCopy, Peers, fetch
from lockstep.train.segment import Segment

KEY = b"the key of the job"
SLOT = 3 * 4096 + 3 * (1 << 20)
SIZE = 3 * (1 << 20) - 17


@pytest.fixture
def holder() -> Memory:
    """A launcher's memory with a copy of step 7."""
    memory = Memory()
    segment = memory.segment(0, SLOT, 42)
    slot = segment.begin()
    start = segment.start(slot)
    segment.map[start : start + 30] = b"t" * 10 + b"p" * 20
    data = bytes(i % 251 for i in range(SIZE))
    segment.map[start + 4096 : start + 4096 + SIZE] = data
    segment.end(slot, 7, 1, (10, 20, 4096, SIZE))
    return memory


@pytest.fixture
def peers(holder: Memory) -> Iterator[Peers]:
    made = Peers("127.0.0.1", KEY, holder)
    threading.Thread(target=made.serve, daemon=True).start()
    yield made
    made.close()


def content(memory: Memory) -> bytes:
    found = memory.find(7)
    assert found is not None
    segment, whole = found
    return segment.read(segment.start(whole.slot), whole.data + whole.size)


def test_a_copy_comes_whole(peers: Peers, holder: Memory) -> None:
    mine = Memory()
    fetch(peers.address, KEY, Asked(7), partial(mine.segment, 1))
    assert content(mine) == content(holder)
    assert mine.lacks(7, 2) == [0]


@pytest.mark.parametrize(("key", "step"), [(b"another key", 7), (b"", 7), (KEY, 8)])
def test_nothing_comes_without_the_key_or_the_step(peers: Peers, key: bytes, step: int) -> None:
    mine = Memory()
    with pytest.raises(NoCopy, match="has no copy"):
        fetch(peers.address, key, Asked(step), partial(mine.segment, 0))
    assert mine.files(0) == []


class Meddler:
    """Stands between two launchers and changes one byte of what the second one gets."""

    def __init__(self, address: str, at: int, cut: bool = False) -> None:
        self._at, self._cut = at, cut
        host, _, port = address.rpartition(":")
        self._there = (host, int(port))
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._socket.getsockname()[1]}"
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        # Who sees the change hangs up.
        with contextlib.suppress(OSError):
            self._pass_on()

    def _pass_on(self) -> None:
        near, _ = self._socket.accept()
        far = socket.create_connection(self._there)
        near.sendall(far.makefile("rb", buffering=0).readline())
        far.sendall(near.makefile("rb", buffering=0).readline())
        seen = 0
        while data := bytearray(far.recv(65536)):
            if seen <= self._at < seen + len(data):
                if self._cut:
                    break
                data[self._at - seen] ^= 1
            seen += len(data)
            near.sendall(data)
        near.close()


@pytest.mark.parametrize("at", [0, 3, 200, 5000, SIZE // 2, SIZE + 4000])
@pytest.mark.parametrize("cut", [False, True])
def test_a_copy_changed_or_cut_in_transfer_never_counts(peers: Peers, at: int, cut: bool) -> None:
    mine = Memory()
    with pytest.raises(NoCopy):
        address = Meddler(peers.address, at, cut).address
        fetch(address, KEY, Asked(7), partial(mine.segment, 0))
    assert mine.find(7) is None


def test_nobody_there_is_told(holder: Memory) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
    with pytest.raises(NoCopy, match=address):
        fetch(address, KEY, Asked(7), lambda *_: pytest.fail("nothing to make"))


def test_memory_that_does_not_suffice_is_named_in_numbers() -> None:
    from lockstep.train.memory import TooLittleMemory

    with pytest.raises(TooLittleMemory, match=r"take \d+ MiB, and \d+ MiB are free"):
        Memory().make(0, 1 << 50, 1)


def test_the_launchers_kept_segment_is_the_one_the_rank_maps(holder: Memory) -> None:
    (fd,) = holder.files(0)
    assert [one.step for one in Segment(fd).whole()] == [7]
