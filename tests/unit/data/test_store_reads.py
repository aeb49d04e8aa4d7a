"""How long reads wait for a store that fails, on a clock that moves by itself."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.support.virtual_time import run_virtually

from lockstep.data.cache.sources import SourceFailed
from lockstep.data.cache.store_reads import REFUSED, StoreReads, Terms
from lockstep.data.core.manifest import Entry

ENTRY = Entry("a", 3, "", 1.0, 0, "a")


class Store:
    """A source that fails for *reason* while there is one."""

    uri = "s3://b"

    def __init__(self, reason: str) -> None:
        self.reason, self.asked = reason, 0

    async def read(self, entry: Entry, start: int, end: int) -> bytes:
        self.asked += 1
        if self.reason:
            raise SourceFailed(self.reason, self.reason)
        return b"abc"[start:end]


def reads(store: Any, key: Any = None) -> StoreReads:
    async def renew() -> None:
        if key is not None:
            key()

    return StoreReads(Terms(sources=[store], timeout=60.0), renew)


async def failed_after(one: StoreReads) -> float:
    since = asyncio.get_running_loop().time()
    with pytest.raises(SourceFailed):
        await one.read(ENTRY, 0, 3)
    return asyncio.get_running_loop().time() - since


def test_all_reads_share_one_wait_for_a_refused_key() -> None:
    async def story() -> None:
        store = Store("SourceRefused")
        one = reads(store)
        waited = await asyncio.gather(*(failed_after(one) for _ in range(100)))
        assert REFUSED / 2 < max(waited) <= REFUSED
        assert await failed_after(one) < 1.0
        assert one.failing is not None
        assert one.failing.reason == "SourceRefused"
        store.reason = ""
        assert await one.read(ENTRY, 0, 3) == b"abc"
        assert one.failing is None
        store.reason = "SourceRefused"
        assert await failed_after(one) > REFUSED / 2

    run_virtually(story())


def test_a_replaced_key_serves_the_next_read_however_late() -> None:
    async def story() -> None:
        store = Store("SourceRefused")
        keys = list[int]()

        def replace() -> None:
            if keys:
                store.reason = ""

        one = reads(store, replace)
        await failed_after(one)
        await asyncio.sleep(1000)
        keys.append(1)
        assert await one.read(ENTRY, 1, 3) == b"bc"

    run_virtually(story())


def test_a_store_out_of_reach_is_waited_for_until_timeout() -> None:
    async def story() -> None:
        assert 40 < await failed_after(reads(Store("SourceUnreachable"))) <= 60

    run_virtually(story())
