"""A node's cache as a process: views, peers, faults, room, and being killed."""

from __future__ import annotations

import asyncio
import errno
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.support.cache_nodes import MIB, digest, drawn, expected, made
from tests.support.data_caches import (
    SPACE,
    ask,
    bind,
    change,
    needs_views,
    status,
    until,
)
from tests.support.range_store import RangeStore
from tests.support.s3 import S3, SECRET, USER
from tests.support.waiting import stretched

from lockstep.api.core import EVENTS, SECRETS
from lockstep.data.view import holder
from lockstep.kube.client import Client
from lockstep.nodes.process.shim.calls import mount

pytest.importorskip("obstore", reason="needs the data extra")


@needs_views
async def test_a_view_shows_the_files_while_they_are_fetched(client: Client, nodes: Any) -> None:
    files = {**made(40, 3000), "large": drawn(20 * MIB + 5), "empty": b""}
    store = RangeStore(files)
    [node] = nodes("v1")
    await ask(client, "shown", node.name, "s3://bucket", store.url, reading=True)
    seen = await bind(client, "shown", node.name)
    view = Path((await until(client, "shown", node.name, lambda one: one.view)).view)
    assert sorted(one.name for one in view.iterdir()) == sorted(
        {key.split("/")[0] for key in files}
    )
    assert await asyncio.to_thread(digest, view) == expected(files)
    assert (view / "large").stat().st_size == 20 * MIB + 5
    assert (view / "large").stat().st_mtime == 1577836800
    for path, code in ((view / "absent", errno.ENOENT), (view / "d1" / "x" / "y", errno.ENOENT)):
        with pytest.raises(OSError) as told:
            path.read_bytes()
        assert told.value.errno == code
    with pytest.raises(OSError) as told:
        (view / "new").write_bytes(b"x")
    assert told.value.errno == errno.EROFS
    # Each byte was asked for once, though reads came in small steps.
    assert store.total == sum(map(len, files.values()))
    assert seen.files == len(files)
    store.close()


async def further(counts: list[int], by: int) -> None:
    """Wait until each count has grown."""
    before = list(counts)
    for _ in range(600):
        if all(now >= was + by for now, was in zip(counts, before, strict=True)):
            return
        await asyncio.sleep(0.1)
    raise AssertionError(f"readers stand still: {before}, {counts}")


@needs_views
async def test_readers_wait_while_a_killed_cache_is_replaced(client: Client, nodes: Any) -> None:
    files = made(300, 50_000)
    store = RangeStore(files)
    store.delay = 0.01
    [node] = nodes("v2")
    await ask(client, "killed", node.name, "s3://bucket", store.url, reading=True)
    await bind(client, "killed", node.name)
    view = Path((await until(client, "killed", node.name, lambda one: one.view)).view)
    over, counts = False, [0] * 4

    def read(seed: int) -> None:
        keys = sorted(files)
        while not over:
            key = keys[(counts[seed] * 79 + seed * 31) % len(keys)]
            assert (view / key).read_bytes() == files[key], key
            counts[seed] += 1

    with ThreadPoolExecutor(4) as pool:
        readers = [pool.submit(read, seed) for seed in range(4)]
        try:
            for _ in range(2):
                await further(counts, 5)
                node.kill()
                node.start()
            await further(counts, 5)
        finally:
            over = True
        for one in readers:
            one.result(60)
    store.close()


@needs_views
async def test_a_dataset_larger_than_its_room_is_read_within_it(client: Client, nodes: Any) -> None:
    files = made(64, 256 << 10)
    store = RangeStore(files)
    [node] = nodes("v3")
    quota = 8 * MIB
    tier = {"medium": "SSD", "bytes": quota, "high": 1.0, "low": 0.7}
    await ask(client, "narrow", node.name, "s3://bucket", store.url, reading=True, tiers=[tier])
    await bind(client, "narrow", node.name, targets=["/"])
    seen = await until(client, "narrow", node.name, lambda one: one.reason)
    assert seen.reason == "TooLargeForTheCache"
    assert "quota" in seen.message
    view, first = Path(seen.view), store.total
    for _ in range(3):
        assert await asyncio.to_thread(digest, view) == expected(files)
        # What fits stays: about half of each pass comes from the disk, in whatever order it is
        # read; a few files more or less by what is fetched side by side.
        assert store.total - first <= 0.65 * sum(map(len, files.values()))
        first = store.total
    base = Path((await status(client, "narrow", node.name)).path).parent
    held = sum(one.stat().st_blocks * 512 for one in base.rglob("[0-9]*") if one.is_file())
    assert quota // 2 < held <= quota
    store.close()


async def test_datasets_of_a_namespace_stay_within_its_quota(client: Client, nodes: Any) -> None:
    store = RangeStore(made(40, 100_000))
    [node] = nodes("frugal")
    quota = 5 * MIB
    for name in ("first", "second"):
        await ask(client, name, node.name, "s3://bucket", store.url, quota=quota)
        await bind(client, name, node.name, targets=["/"], reading=True)
    await until(client, "first", node.name, lambda one: one.whole)
    short = await until(client, "second", node.name, lambda one: one.reason)
    assert "data.lockstep.dev/quota" in short.message
    held = 0
    for name in ("first", "second"):
        base = Path((await status(client, name, node.name)).path).parent
        held += sum(one.stat().st_blocks * 512 for one in base.rglob("[0-9]*") if one.is_file())
    assert quota - MIB < held <= quota
    address = node.log.split(" at ")[1].split()[0]
    page = await asyncio.to_thread(scraped, f"http://{address}/metrics")
    labels = f'namespace="{SPACE}",dataset="first"'
    assert f'lockstep_data_read_bytes_total{{{labels},source="store"}} 4000000' in page
    assert f"lockstep_data_cached_bytes{{{labels}}} 4e+06" in page
    store.close()


def scraped(url: str) -> str:
    with urllib.request.urlopen(url, timeout=stretched(20)) as answer:  # noqa: S310
        text: str = answer.read().decode()
    return text


async def test_nodes_of_a_dataset_ask_the_store_once_together(client: Client, nodes: Any) -> None:
    files = {**made(60, 20_000), "large": drawn(40 * MIB)}
    store = RangeStore(files)
    started = nodes("p1", "p2", "p3", "p4")
    names = [one.name for one in started]
    for name in names:
        await ask(client, "peers", name, "s3://bucket", store.url)
    addresses = {}
    for name in names:
        seen = await until(client, "peers", name, lambda one: one.listed)
        log = next(one.log for one in started if one.name == name)
        addresses[name] = log.split(" at ")[1].split()[0]
    peers = [{"node": name, "address": at} for name, at in addresses.items()]
    for name in names:
        if name == names[-1]:  # it is late: the others ask it for what it owns before
            for other in names[:-1]:
                await until(client, "peers", other, lambda one: one.fetched_bytes, 120)
        await change(
            client,
            "peers",
            name,
            version=seen.listed,
            targets=["/"],
            peers=peers,
            reading=True,
            timeout=600,  # however long a node takes to start, the others wait for it
        )
    for name in names:
        done = await until(client, "peers", name, lambda one: one.whole and one.bound, 120)
        assert await asyncio.to_thread(digest, Path(done.path)) == expected(files)
    assert store.total == sum(map(len, files.values()))
    told = [await status(client, "peers", name) for name in names]
    assert all(one.peer_bytes > 0 for one in told)
    store.close()


async def test_a_dead_owners_share_moves_to_the_others(client: Client, nodes: Any) -> None:
    files = made(60, 20_000)
    store = RangeStore(files)
    alive, dead = nodes("q1", "q2")
    await ask(client, "moving", alive.name, "s3://bucket", store.url)
    dead.kill()
    at = dead.log.split(" at ")[1].split()[0] if " at " in dead.log else "127.0.0.1:1"
    peers = [{"node": alive.name, "address": ""}, {"node": dead.name, "address": at}]
    await bind(client, "moving", alive.name, targets=["/"], peers=peers)
    done = await until(client, "moving", alive.name, lambda one: one.whole)
    assert await asyncio.to_thread(digest, Path(done.path)) == expected(files)
    assert done.fetched_bytes == sum(map(len, files.values()))
    store.close()


@needs_views
@pytest.mark.parametrize(
    ("name", "fault", "code", "reason"),
    [
        ("unavailable", 503, errno.EIO, ("SourceUnreachable", "SourceSlow")),
        ("halved", "half", errno.EIO, ("SourceCutShort", "SourceUnreachable", "SourceSlow")),
        ("refused", 403, errno.EIO, ("SourceRefused",)),
        ("changed", 412, errno.ESTALE, ("SourceChanged",)),
        ("deleted", 404, errno.ESTALE, ("SourceChanged",)),
    ],
)
async def test_an_event_names_the_store_that_fails_a_read(
    client: Client, nodes: Any, *, name: str, fault: Any, code: int, reason: tuple[str, ...]
) -> None:
    files = made(4, 5000)
    store = RangeStore(files)
    [node] = nodes(name)
    await ask(client, name, node.name, "s3://bucket", store.url, reading=True, timeout=1)
    await bind(client, name, node.name)
    view = Path((await until(client, name, node.name, lambda one: one.view)).view)
    store.fault = lambda key: fault if key == "d1/0001" else None
    with pytest.raises(OSError) as told:
        await asyncio.to_thread((view / "d1/0001").read_bytes)
    assert told.value.errno == code
    assert (view / "d2/0002").read_bytes() == files["d2/0002"]

    async def said() -> bool:
        found = (await client.list(EVENTS, SPACE)).items
        return any(
            one.involved_object.name == f"{name}.{node.name}" and one.reason in reason
            for one in found
        )

    for _ in range(100):
        if await said():
            break
        await asyncio.sleep(0.1)
    else:
        raise AssertionError("no event says why")
    # The store is well again, and so are reads.
    store.fault = lambda key: None
    if code == errno.EIO:
        assert await asyncio.to_thread((view / "d1/0001").read_bytes) == files["d1/0001"]
    store.close()


@needs_views
async def test_an_expired_key_is_named_and_its_successor_taken(
    client: Client, nodes: Any, tmp_path: Path
) -> None:
    s3 = S3(tmp_path)
    bucket = s3.bucket("keys")
    # So many that each of the two nodes asks the store for some of them.
    many = 24
    for index in range(many):
        bucket.put(f"f{index}", b"x" * 1000)
    pair = {"user": USER, "secret": SECRET}
    await client.create(SECRETS, {"metadata": {"name": "store"}, "stringData": pair}, SPACE)
    keys = {"access_key_id": "user", "secret_access_key": "secret"}
    mount = {
        "uri": "s3://keys",
        "options": {"endpoint": s3.url},
        "secrets": {name: {"name": "store", "key": key} for name, key in keys.items()},
    }
    first, second = nodes("k1", "k2")
    known = [{"node": one.name, "address": ""} for one in (first, second)]
    for one in (first, second):
        spec = {"mounts": [mount], "reading": True, "timeout": 3}
        await ask(client, "keys", one.name, "s3://keys", s3.url, **spec)
        known[one is second]["address"] = (await bind(client, "keys", one.name)).address
    for one in (first, second):
        await change(client, "keys", one.name, peers=known)
    view = Path((await until(client, "keys", first.name, lambda one: one.view)).view)
    s3.close()
    s3.start("another")
    for index in range(many):
        with pytest.raises(OSError) as told:
            await asyncio.to_thread((view / f"f{index}").read_bytes)
        assert told.value.errno == errno.EIO
    for one in (first, second):
        seen = await until(client, "keys", one.name, lambda one: one.reason == "SourceRefused")
        assert "s3://keys refuses the key of Secret store" in seen.message
        assert SECRET not in seen.message
    await client.patch(SECRETS, "store", {"stringData": {"secret": "another"}}, SPACE)
    for index in range(many):
        assert await asyncio.to_thread((view / f"f{index}").read_bytes) == b"x" * 1000
    for one in (first, second):
        await until(client, "keys", one.name, lambda one: not one.reason)
    s3.close()


@needs_views
async def test_a_read_dataset_takes_the_room_of_an_unread_one(
    client: Client, nodes: Any, place: Path
) -> None:
    """Both lie on a file system of 24 MiB."""
    small = place / "small"
    small.mkdir()
    mount("none", str(small), 0, "tmpfs", "size=24m")
    try:
        files = made(64, 256 << 10)
        store = RangeStore(files)
        [node] = nodes("r1")
        tier = {"medium": "SSD", "path": str(small), "high": 0.95, "low": 0.7}
        for name in ("idle", "busy"):
            await ask(client, name, node.name, "s3://bucket", store.url, tiers=[tier])
        await bind(client, "idle", node.name, targets=["/"])
        await until(client, "idle", node.name, lambda one: one.whole)
        await bind(client, "busy", node.name, targets=["/"], reading=True)
        await until(client, "busy", node.name, lambda one: one.whole and one.bound)
        idle = await until(client, "idle", node.name, lambda one: one.cached_bytes < 9 * MIB)
        assert "other datasets needed its room" in idle.message
        store.close()
        node.stop()
    finally:
        holder.unmount(str(small))
