"""The client library on a real cache: fsspec, and a sampler whose order is fetched ahead."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest
from tests.support.apiserver import ApiServer
from tests.support.data_caches import (
    SPACE,
    TOKEN,
    CacheProcess,
    ask,
    bind,
    needs_views,
    status,
    until,
)
from tests.support.range_store import RangeStore

from lockstep.api.dataset_cache import DATASET_CACHES
from lockstep.data.client import EpochSampler, Files
from lockstep.data.client.filesystem import LockstepFileSystem
from lockstep.kube.client import Client
from lockstep.kube.crds import ensure_crds

FILES = {f"d{index % 3}/{index:03}": bytes([index]) * 30_000 for index in range(60)}


@pytest.fixture
async def client(shared_server: ApiServer) -> AsyncIterator[Client]:
    async with shared_server.client() as found:
        await ensure_crds(found)
        yield found
        for one in (await found.list(DATASET_CACHES, SPACE)).items:
            await found.delete(DATASET_CACHES, one.metadata.name, SPACE)


@pytest.fixture
def node(
    shared_server: ApiServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[CacheProcess]:
    running = CacheProcess(shared_server, tmp_path_factory.mktemp("k"), "client-node").start()
    yield running
    running.stop()


async def test_fsspec_reads_what_the_store_has(
    client: Client, node: CacheProcess, shared_server: ApiServer
) -> None:
    store = RangeStore(FILES)
    await ask(client, "faced", node.name, "s3://bucket", store.url)
    await bind(client, "faced", node.name)
    await until(client, "faced", node.name, lambda one: one.address)
    fsspec.register_implementation("lockstep", LockstepFileSystem, clobber=True)
    await asyncio.to_thread(_read, str(shared_server.kubeconfig))
    store.close()


def _read(kubeconfig: str) -> None:
    files = fsspec.filesystem("lockstep", kubeconfig=kubeconfig, skip_instance_cache=True)
    root = "lockstep://default/faced"
    found = files.find(root)
    assert found == sorted(f"default/faced/{key}" for key in FILES)
    assert files.cat(f"{root}/d1/001") == FILES["d1/001"]
    assert files.cat_file(f"{root}/d1/001", 10, 20) == FILES["d1/001"][10:20]
    assert files.cat_file(f"{root}/d1/001", -5) == FILES["d1/001"][-5:]
    assert files.isdir(f"{root}/d1")
    assert files.info(f"{root}/d2/002")["size"] == 30_000
    with files.open(f"{root}/d2/002") as file:
        file.seek(29_990)
        assert file.read() == FILES["d2/002"][-10:]
    with pytest.raises(FileNotFoundError):
        files.cat(f"{root}/absent")
    with pytest.raises(OSError):
        files.open(f"{root}/new", "wb")
    [endpoint] = files._known.values()
    assert endpoint.endpoint.token == TOKEN
    options = {
        "default/faced": {
            "address": endpoint.endpoint.address,
            "uid": endpoint.endpoint.uid,
            "token": "another",
        }
    }
    strange = LockstepFileSystem(endpoints=options, skip_instance_cache=True)
    with pytest.raises(OSError, match="another token"):
        strange.cat(f"{root}/d1/001")


@needs_views
async def test_what_a_sampler_reads_next_is_fetched_ahead(
    client: Client, node: CacheProcess
) -> None:
    store = RangeStore(FILES)
    await ask(client, "ahead", node.name, "s3://bucket", store.url, reading=True)
    await bind(client, "ahead", node.name)
    view = Path((await until(client, "ahead", node.name, lambda one: one.view)).view)
    files = await asyncio.to_thread(Files, view)
    assert files.names == sorted(FILES)
    sampler = EpochSampler(files, seed=4)
    order = iter(sampler)
    first = await asyncio.to_thread(next, order)  # which publishes the order
    seen: Any = await until(client, "ahead", node.name, lambda one: one.cached_files == len(FILES))
    assert seen.files == len(FILES)
    assert files[first] == FILES[files.names[first]]
    rest = [await asyncio.to_thread(files.__getitem__, one) for one in order]
    assert len(rest) == len(FILES) - 1
    assert (await status(client, "ahead", node.name)).waited_seconds == 0.0
    assert store.total == sum(map(len, FILES.values()))
    store.close()
