"""A node that asks another for a chunk: when it waits, and when it does not."""

from __future__ import annotations

import asyncio
import time
import zlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec import structs

from lockstep.api.backoff import Backoff
from lockstep.api.dataset_cache import CachePeer

pytest.importorskip("obstore", reason="needs the data extra")
from lockstep.data.cache import peers as module
from lockstep.data.cache.peers import PeerFailed, Peers
from lockstep.data.cache.serving import Refusal, Server
from lockstep.data.cache.sources import SourceFailed
from lockstep.data.cache.tls import Shown

DATA = b"chunk"
LONG = 3600.0


class Owner:
    """A fake of a dataset on another node, which refuses some requests before it serves."""

    token = "token"

    def __init__(self) -> None:
        self.refusals: list[int] = []
        self.asked = 0

    def of(self, version: str) -> Any:
        self.asked += 1
        if self.refusals:
            raise Refusal(self.refusals.pop(0), f"no version {version}")
        return self

    async def chunk(self, number: int) -> tuple[int | None, int, int, Any, int]:
        return None, 0, len(DATA), DATA, zlib.crc32(DATA)


@pytest.fixture
async def owner() -> AsyncIterator[tuple[Owner, str]]:
    one = Owner()
    server = Server(lambda uid: one if uid == "uid" else None, lambda: b"", "127.0.0.1:0")
    yield one, server.address
    server.close()


@pytest.fixture
async def hidden() -> AsyncIterator[CachePeer]:
    """An owner that is reached beyond its machine, over TLS."""
    one, shown = Owner(), Shown.create("n")
    server = Server(lambda _: one, lambda: b"", "127.0.0.1:0", shown.context)
    yield CachePeer(node="n", address=server.address, certificate=shown.digest)
    server.close()


async def test_chunks_come_over_tls_from_the_certificate_that_was_told(hidden: CachePeer) -> None:
    assert await knowing(hidden).chunk("n", "v", 1, LONG) == DATA
    assert await knowing(hidden).chunks("n", "v", [1, 2]) == {1: DATA, 2: DATA}


@pytest.mark.parametrize("certificate", ["", "0" * 64])
async def test_another_certificate_is_told_no_token(hidden: CachePeer, certificate: str) -> None:
    other = structs.replace(hidden, certificate=certificate)
    with pytest.raises(PeerFailed):
        await knowing(other).chunk("n", "v", 1, LONG)


def knowing(*nodes: CachePeer, uid: str = "uid") -> Peers:
    found = Peers("me", uid, "token")
    found.update(nodes)
    return found


async def test_an_owner_that_starts_is_waited_for(
    owner: tuple[Owner, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PAUSES", Backoff(cap=0.01))
    one, address = owner
    one.refusals = [404] * 20
    assert await knowing(CachePeer(node="n", address=address)).chunk("n", "v", 1, LONG) == DATA
    assert one.asked == 21


async def test_an_owner_that_listens_later_is_waited_for(owner: tuple[Owner, str]) -> None:
    _, address = owner
    peers = knowing(CachePeer(node="n"))
    asking = asyncio.create_task(peers.chunk("n", "v", 1, LONG))
    await asyncio.sleep(0)
    peers.update([CachePeer(node="n", address=address)])
    assert await asking == DATA


async def test_an_owner_that_starts_anew_is_waited_for(owner: tuple[Owner, str]) -> None:
    one, address = owner
    peers = knowing(CachePeer(node="n", address=address))
    assert await peers.chunk("n", "v", 1, LONG) == DATA
    one.refusals = [404]
    assert await peers.chunk("n", "v", 2, LONG) == DATA


@pytest.mark.parametrize("status", [410, 403])
async def test_an_owner_that_never_has_it_is_left(owner: tuple[Owner, str], status: int) -> None:
    one, address = owner
    one.refusals = [status]
    with pytest.raises(PeerFailed):
        await knowing(CachePeer(node="n", address=address)).chunk("n", "v", 1, LONG)
    assert one.asked == 1


async def test_a_node_that_is_none_any_more_is_left() -> None:
    peers = knowing(CachePeer(node="n"))
    asking = asyncio.create_task(peers.chunk("n", "v", 1, LONG))
    await asyncio.sleep(0)
    peers.update([])
    with pytest.raises(PeerFailed, match="no node of the dataset any more"):
        await asking


async def test_patience_ends_once_for_all_chunks(owner: tuple[Owner, str]) -> None:
    one, address = owner
    one.refusals = [404] * 3
    peers = knowing(CachePeer(node="n", address=address))
    since = time.monotonic()
    with pytest.raises(PeerFailed, match="after"):
        await peers.chunk("n", "v", 1, 0.05)
    assert time.monotonic() - since >= 0.05
    with pytest.raises(PeerFailed):
        await peers.chunk("n", "v", 2, 0.05)
    assert one.asked == 3


@pytest.mark.parametrize(("status", "reason"), [(409, "SourceUnreachable"), (412, "SourceChanged")])
async def test_what_the_store_refuses_the_owner_is_told(
    owner: tuple[Owner, str], status: int, reason: str
) -> None:
    one, address = owner
    one.refusals = [status]
    with pytest.raises(SourceFailed) as told:
        await knowing(CachePeer(node="n", address=address)).chunk("n", "v", 1, LONG)
    assert told.value.reason == reason


async def test_small_chunks_travel_together_without_the_broken_ones(
    owner: tuple[Owner, str],
) -> None:
    peers = knowing(CachePeer(node="other", address=owner[1]))
    assert await peers.chunks("other", "v", [3, 1, 2]) == dict.fromkeys((1, 2, 3), DATA)
    assert owner[0].asked == 1
    # One by one it is told why; together nothing comes.
    owner[0].refusals = [404]
    assert await peers.chunks("other", "v", [1]) == {}
    assert await peers.chunks("other", "v", list(range(65))) == {}
