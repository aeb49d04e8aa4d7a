"""The data cache of this node, started once a dataset wants one."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from lockstep.api.dataset_cache import (
    CACHE_NODE_LABEL,
    DATASET_CACHES,
    DatasetCache,
    label_of,
)
from lockstep.kube.cache import Change
from lockstep.kube.client import Client
from lockstep.kube.informer import Informer

log = logging.getLogger(__name__)

AGAIN: Final = 1.0
"""Seconds until a cache that ended is started again."""
GRACE: Final = 5.0


class DataCache:
    """Keeps ``lockstep data-cache`` running while the node has datasets."""

    def __init__(
        self, client: Client, node: str, kubeconfig: Path, data: Path, hide: Sequence[str]
    ) -> None:
        self._wanted = asyncio.Event()
        self._informer = Informer(
            client, DATASET_CACHES, label_selector=f"{CACHE_NODE_LABEL}={label_of(node)}"
        )
        self.command = (
            *(sys.executable, "-P", "-m", "lockstep", "data-cache", "--node", node),
            *("--data", str(data), "--kubeconfig", str(kubeconfig), "--leashed"),
            *(part for one in hide for part in ("--hide", one)),
        )

    async def run(self) -> None:
        """Follow the node's datasets, and run the cache while there are any; until cancelled."""
        self._informer.subscribe(self._on_change)
        informing = asyncio.create_task(self._informer.run())
        try:
            while True:
                await self._wanted.wait()
                await self._run_once()
                await asyncio.sleep(AGAIN)
        finally:
            informing.cancel()

    def _on_change(self, _: Change[DatasetCache]) -> None:
        if len(self._informer):
            self._wanted.set()
        else:
            self._wanted.clear()

    async def _run_once(self) -> None:
        """Run the cache until it ends; its leash is this process's end of a pipe."""
        leash, holder = os.pipe()
        try:
            process = await asyncio.create_subprocess_exec(
                *self.command, stdin=leash, start_new_session=True
            )
        finally:
            os.close(leash)
        log.info("the data cache of this node runs as process %d", process.pid)
        try:
            code = await process.wait()
            log.warning("the data cache ended with %d", code)
        finally:
            os.close(holder)
            with contextlib.suppress(TimeoutError, ProcessLookupError):
                await asyncio.wait_for(process.wait(), GRACE)
