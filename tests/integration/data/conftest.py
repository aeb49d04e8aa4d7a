"""Nodes with a cache, and a client of their API server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.apiserver import ApiServer
from tests.support.data_caches import (
    SPACE,
    CacheProcess,
)

from lockstep.api.dataset_cache import DATASET_CACHES
from lockstep.kube.client import Client
from lockstep.kube.crds import ensure_crds


@pytest.fixture
async def client(shared_server: ApiServer) -> AsyncIterator[Client]:
    async with shared_server.client() as found:
        await ensure_crds(found)
        yield found
        for one in (await found.list(DATASET_CACHES, SPACE)).items:
            await found.delete(DATASET_CACHES, one.metadata.name, SPACE)


@pytest.fixture
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A short path, since the holder's socket lies below it."""
    yield tmp_path_factory.mktemp("c")


@pytest.fixture
def nodes(shared_server: ApiServer, place: Path) -> Iterator[Any]:
    started: list[CacheProcess] = []

    def start(*names: str) -> list[CacheProcess]:
        found = [CacheProcess(shared_server, place, name).start() for name in names]
        started.extend(found)
        return found

    yield start
    for one in started:
        one.stop()
