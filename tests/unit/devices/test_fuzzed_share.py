"""Whatever a container writes into its share: the agent goes on, and its neighbour is granted."""

from __future__ import annotations

import ctypes
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.share_slots import occupy

from lockstep.devices.sharing.clock import SECOND
from lockstep.devices.sharing.contexts import Contexts
from lockstep.devices.sharing.core.exposition import exposition
from lockstep.devices.sharing.core.leases import PERIOD
from lockstep.devices.sharing.granting import SCAN, Granter
from lockstep.devices.sharing.layout import ACCOUNT_SIZE, HEAD_SIZE, SLOT_SIZE
from lockstep.devices.sharing.region import ACCOUNT, Region
from lockstep.devices.sharing.shelf import Grant, Shelf

MIB = 1 << 20
HEAD = HEAD_SIZE + 4 * SLOT_SIZE
"""Up to the fourth process: most of the file is for processes that are not there."""
WRITES = st.lists(
    st.tuples(
        st.one_of(st.integers(0, HEAD - 8), st.integers(0, ACCOUNT_SIZE - 8)),
        st.one_of(st.binary(min_size=1, max_size=8), st.just(b"\xff" * 8), st.just(bytes(8))),
    ),
    min_size=1,
    max_size=30,
)


class Stopped:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.time = SECOND

    def now(self) -> int:
        return self.time

    def heard(self) -> int:
        return 0

    def wait(self, bells: Iterable[int], heard: int, until: int) -> None:
        self.time = until

    def ring(self) -> None:
        pass

    def wake(self, word: ctypes.c_uint32, number: int) -> None:
        pass


def grant(name: str) -> Grant:
    return Grant(
        namespace="n",
        pod=name,
        container="c",
        uid=name,
        cards=["GPU-0"],
        memory=100 * MIB,
        compute=40,
    )


@settings(max_examples=examples(60), deadline=None)
@given(WRITES, st.none() | st.integers(0, 2 * ACCOUNT_SIZE))
def test_agent_grants_on_whatever_is_written(
    writes: list[tuple[int, bytes]], size: int | None
) -> None:
    with tempfile.TemporaryDirectory() as place:
        shelf, clock = Shelf(Path(place)), Stopped()
        paths = {name: shelf.put(grant(name)) for name in ("bad", "good")}
        granter = Granter(shelf.root, clock)
        contexts = Contexts(lambda uuids: {uuid: {1: 1 << 63} for uuid in uuids})
        granter.turn(clock.time)
        for at, data in writes:
            with paths["bad"].with_suffix(ACCOUNT).open("r+b") as file:
                file.seek(at)
                file.write(data)
        if size is not None:
            os.truncate(paths["bad"].with_suffix(ACCOUNT), size)
        waits = occupy(paths["good"], waiting=1)
        for _ in range(3):
            clock.time += SCAN + 1
            until = granter.turn(clock.time)
            assert clock.time <= until <= clock.time + SECOND
            contexts.look(granter.shares(), clock.time / SECOND)
            assert exposition(granter.uses())
        os.close(waits)
        card = Region(paths["good"]).record.card[0]
        lease = card.leases[card.sequence & 1]
        assert lease.until > clock.time
        # Its own part at the least, whatever the other one claims to have used.
        assert lease.length >= PERIOD * 40 // 100
        bad = granter.held["bad/c"].region.record.card[0]
        assert (bad.limit, bad.compute) == (100 * MIB, 40)
        assert paths["bad"].with_suffix(ACCOUNT).stat().st_size == ACCOUNT_SIZE
