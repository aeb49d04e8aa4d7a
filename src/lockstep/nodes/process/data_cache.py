"""The data cache of this node, started once a dataset wants one."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import logging
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from lockstep.api.core import NODES
from lockstep.api.dataset_cache import (
    CACHE_NODE_LABEL,
    CAN_CACHE_LABEL,
    DATASET_CACHES,
    DatasetCache,
    label_of,
)
from lockstep.kube.cache import Change
from lockstep.kube.client import Client
from lockstep.kube.errors import ApiError
from lockstep.kube.informer import Informer

log = logging.getLogger(__name__)

AGAIN: Final = 1.0
"""Seconds until a cache that ended is started again."""
LONG: Final = 10.0
"""Seconds after which a cache that runs has started well."""
TRIES: Final = 3
"""Starts in a row that fail until the node says that it has no cache."""
_AGAIN_LATER: Final = 30.0
GRACE: Final = 5.0
_INSTALL: Final = "`pip install 'lockstep[data]'` there, and start the node again"


class DataCache:
    """Keeps ``lockstep data-cache`` running while the node has datasets."""

    def __init__(
        self, client: Client, node: str, kubeconfig: Path | None, data: Path, hide: Sequence[str]
    ) -> None:
        self._client, self._node, self._failed = client, node, 0
        self._wanted = asyncio.Event()
        missing = importlib.util.find_spec("obstore") is None
        self.problem = f"node {node} runs no data cache: {_INSTALL}" if missing else ""
        """Why this node keeps no datasets, and what to do; empty while it can."""
        self._informer = Informer(
            client, DATASET_CACHES, label_selector=f"{CACHE_NODE_LABEL}={label_of(node)}"
        )
        self._informer.optional = True
        own = ("--kubeconfig", str(kubeconfig)) if kubeconfig is not None else ()
        self.command = (
            *(sys.executable, "-P", "-m", "lockstep", "data-cache", "--node", node),
            *("--data", str(data), *own, "--leashed"),
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
                await asyncio.sleep(_AGAIN_LATER if self.problem else AGAIN)
        finally:
            informing.cancel()

    def _on_change(self, _: Change[DatasetCache]) -> None:
        if len(self._informer):
            self._wanted.set()
        else:
            self._wanted.clear()

    async def _starts_well(self) -> None:
        await asyncio.sleep(LONG)
        self._failed = 0
        if self.problem:
            await self._tell("")

    async def _tell(self, problem: str) -> None:
        """Let the cluster know whether this node keeps datasets, and its pods why not."""
        self.problem = problem
        labels = {CAN_CACHE_LABEL: "false" if problem else "true"}
        try:
            await self._client.patch(NODES, self._node, {"metadata": {"labels": labels}})
        except ApiError as error:
            log.warning("node %s cannot be labelled: %s", self._node, error)

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
        well = asyncio.create_task(self._starts_well())
        try:
            code = await process.wait()
            log.warning("the data cache ended with %d", code)
            self._failed += 1
            if self._failed >= TRIES:
                shown = shlex.join(self.command[3:-1])
                await self._tell(
                    f"node {self._node} runs no data cache: it ended {self._failed} times, last "
                    f"with status {code}; `{shown}` there shows why"
                )
        finally:
            well.cancel()
            os.close(holder)
            with contextlib.suppress(TimeoutError, ProcessLookupError):
                await asyncio.wait_for(process.wait(), GRACE)
