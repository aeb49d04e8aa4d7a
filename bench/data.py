"""Warm-up of a dataset from a real S3 server, beside a bare loop over obstore that writes files."""

from __future__ import annotations

import asyncio
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import obstore
from obstore.store import S3Store
from tests.support.s3 import S3, SECRET, USER
from tools.s3 import build

from bench.figure import Figure, NotMeasured
from lockstep.api.dataset_cache import CacheMount
from lockstep.data.cache.sources import Source
from lockstep.data.cache.stock import Stock
from lockstep.data.cache.store_reads import AT_ONCE, Terms
from lockstep.data.cache.supply import Supply
from lockstep.data.core.manifest import Manifest
from lockstep.data.core.manifest import build as manifest_of
from lockstep.data.core.room import Account

SLOW = True
SMALL, LARGE = (3000, 4 << 10), (6, 64 << 20)
"""Objects and bytes of each."""
PAIRS = 3
OF_BARE, OF_LISTING = 0.8, 0.7
Work = Callable[[S3, str, Manifest, Path], Coroutine[Any, Any, None]]


def run() -> list[Figure]:
    if build.find() is None:
        raise NotMeasured("needs versitygw: make s3")
    with tempfile.TemporaryDirectory() as directory:
        server = S3(Path(directory) / "s3")
        try:
            found = [
                _warm(server, Path(directory), "small", *SMALL),
                _warm(server, Path(directory), "large", *LARGE),
                _list(server),
            ]
        finally:
            server.close()
    return found


def _warm(server: S3, place: Path, name: str, count: int, size: int) -> Figure:
    bucket, block = server.bucket(name), os.urandom(size)
    for number in range(count):
        bucket.put(f"{number % 10}/{number:06}", block)
    manifest = asyncio.run(_manifest(server, name))
    ours: list[float] = []
    bare: list[float] = []
    for number in range(PAIRS):
        for seconds, work in ((ours, _fetch), (bare, _bare)):
            target = place / f"{work.__name__}-{name}-{number}" / "files"
            seconds.append(_timed(work, server, name, manifest, target))
    rate, peer = (count / statistics.median(one) for one in (ours, bare))
    unit = "objects/s"
    if size >= 1 << 20:
        rate, peer, unit = rate * size / 1e6, peer * size / 1e6, "MB/s"
    words = f"{count:,} objects of {size >> 10} KiB" if size < 1 << 20 else f"{count} of 64 MiB"
    return Figure(f"warm-up, {words}", rate, unit, limit=OF_BARE * peer).beside(
        "bare obstore loop", peer
    )


def _list(server: S3) -> Figure:
    ours, bare = [], []
    for _ in range(PAIRS):
        start = time.perf_counter()
        found = asyncio.run(_manifest(server, "small"))
        ours.append(len(found.entries) / (time.perf_counter() - start))
        start = time.perf_counter()
        count = asyncio.run(_bare_listing(_store(server, "small")))
        bare.append(count / (time.perf_counter() - start))
    rate, peer = statistics.median(ours), statistics.median(bare)
    return Figure("listed and made a version", rate, "objects/s", limit=OF_LISTING * peer).beside(
        "bare obstore listing", peer
    )


def _timed(work: Work, server: S3, bucket: str, manifest: Manifest, target: Path) -> float:
    target.mkdir(parents=True)
    start = time.perf_counter()
    asyncio.run(work(server, bucket, manifest, target))
    seconds = time.perf_counter() - start
    shutil.rmtree(target.parent)
    return seconds


def _source(server: S3, bucket: str) -> Source:
    mount = CacheMount(uri=f"s3://{bucket}", options={"endpoint": server.url})
    return Source(mount, {"access_key_id": USER, "secret_access_key": SECRET})


async def _manifest(server: S3, bucket: str) -> Manifest:
    return manifest_of([("", await _source(server, bucket).list())])


async def _fetch(server: S3, bucket: str, manifest: Manifest, target: Path) -> None:
    await supply_of(_source(server, bucket), manifest, target).fill(range(len(manifest.entries)))


def supply_of(source: Source, manifest: Manifest, target: Path) -> Supply:
    """Return a supply as a node has it, below the directory *target*, without other nodes."""

    async def renew() -> None:
        pass

    stock = Stock(target, manifest)
    stock.recover()
    terms = Terms(sources=[source], account=Account(1 << 40, 1 << 40))
    return Supply(stock, terms, renew=renew, make_room=lambda size: 0, trouble=lambda error: None)


def _store(server: S3, bucket: str) -> S3Store:
    config: Any = {
        "aws_endpoint": server.url,
        "aws_access_key_id": USER,
        "aws_secret_access_key": SECRET,
        "aws_region": "us-east-1",
    }
    return S3Store(bucket, config=config, client_options={"allow_http": True})


async def _bare(server: S3, bucket: str, manifest: Manifest, target: Path) -> None:
    store, waiting = _store(server, bucket), iter(manifest.entries)

    async def work() -> None:
        for entry in waiting:
            data = await (await obstore.get_async(store, entry.key)).bytes_async()
            path = target / entry.path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)

    await asyncio.gather(*(work() for _ in range(AT_ONCE)))


async def _bare_listing(store: S3Store) -> int:
    count = 0
    async for batch in obstore.list(store, chunk_size=1000):
        count += len(batch)
    return count
