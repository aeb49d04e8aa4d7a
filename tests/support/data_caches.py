"""Data caches as real processes, each a node of its own, told what to do by DatasetCaches."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.support.apiserver import ApiServer
from tests.support.waiting import stretched

from lockstep.api.core import SECRETS
from lockstep.api.dataset_cache import (
    CACHE_NODE_LABEL,
    DATASET_CACHES,
    DatasetCache,
    DatasetCacheStatus,
    cache_name,
    label_of,
)
from lockstep.kube.client import Client
from lockstep.kube.errors import AlreadyExists

SPACE = "default"
TOKEN = "token-of-the-tests"


class CacheProcess:
    """``lockstep data-cache`` of the node *name*."""

    def __init__(self, server: ApiServer, root: Path, name: str, *before: str) -> None:
        self.name, self.root = name, root / name
        self.root.mkdir(parents=True, exist_ok=True)
        self._command = [
            *before,
            *(sys.executable, "-P", "-m", "lockstep", "data-cache", "--node", name),
            *("--data", str(self.root)),
            *("--kubeconfig", str(server.data / "kubeconfigs" / "data-cache.kubeconfig")),
        ]
        self.listen = "127.0.0.1:0"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> CacheProcess:
        with (self.root / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [*self._command, "--listen", self.listen], stdout=log, stderr=log
            )
        return self

    def kill(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(20)

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(20)
            self.process.kill()

    @property
    def log(self) -> str:
        return (self.root / "log").read_text()


async def ask(client: Client, name: str, node: str, uri: str, url: str, **spec: Any) -> None:
    """Ask *node* to keep the dataset *name* from the store at *url*."""
    with contextlib.suppress(AlreadyExists):
        secret = {"metadata": {"name": f"{name}-data-token"}, "stringData": {"token": TOKEN}}
        await client.create(SECRETS, secret, SPACE)
    mount = {"uri": uri, "path": "", "options": {"endpoint": url}}
    body = {
        "metadata": {
            "name": cache_name(name, node),
            "labels": {CACHE_NODE_LABEL: label_of(node)},
            # Nodes of a dataset call it by its owner, which is the same for all.
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Secret", "name": f"{name}-data-token", "uid": uid}
                for uid in [(await client.get(SECRETS, f"{name}-data-token", SPACE)).metadata.uid]
            ],
        },
        "spec": {
            "node": node,
            "dataset": name,
            "mounts": [mount],
            "token": {"name": f"{name}-data-token", "key": "token"},
            "timeout": 5,
            **spec,
        },
    }
    await client.create(DATASET_CACHES, body, SPACE)


async def change(client: Client, name: str, node: str, **spec: Any) -> None:
    body = {"spec": spec}
    await client.patch(DATASET_CACHES, cache_name(name, node), body, SPACE)


async def status(client: Client, name: str, node: str) -> DatasetCacheStatus:
    found: DatasetCache = await client.get(DATASET_CACHES, cache_name(name, node), SPACE)
    return found.status


async def until(
    client: Client, name: str, node: str, true: Any, within: float = 60.0
) -> DatasetCacheStatus:
    """Wait until *true* holds of what *node* says of the dataset."""
    import asyncio

    end = time.monotonic() + stretched(within)
    while not true(seen := await status(client, name, node)):
        assert time.monotonic() < end, seen
        await asyncio.sleep(0.1)
    return seen


async def bind(client: Client, name: str, node: str, **spec: Any) -> DatasetCacheStatus:
    """Bind what *node* listed, and wait until it serves that version."""
    seen = await until(client, name, node, lambda one: one.listed)
    await change(client, name, node, version=seen.listed, **spec)
    return await until(client, name, node, lambda one: one.version == one.listed)


def can_mount() -> bool:
    """Tell whether views can be tested here."""
    return Path("/dev/fuse").exists() and os.geteuid() == 0


needs_views = pytest.mark.skipif(not can_mount(), reason="needs /dev/fuse and root")
