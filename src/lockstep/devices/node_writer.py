"""Writes what the node has and does: its annotations, labels and amounts, and its DeviceUsage."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable

from lockstep.api import names
from lockstep.api.core import NODES
from lockstep.api.device_usage import DEVICE_USAGES, GpuUsage, ShareUsage
from lockstep.api.timestamp import show
from lockstep.api.wire import Json, to_builtins
from lockstep.devices.core import stated
from lockstep.devices.core.exposition import Shown
from lockstep.devices.core.model import Inventory
from lockstep.devices.core.usage import differs, usage
from lockstep.devices.sharing.accounts import Accounts
from lockstep.devices.sharing.core.exposition import Use
from lockstep.devices.watching import Watch
from lockstep.kube.client import Client
from lockstep.kube.errors import AlreadyExists, ApiError, NotFound
from lockstep.runtime.status import patch_status

log = logging.getLogger(__name__)


RETRY = 1.0
USAGE_EVERY = 5.0
"""Seconds between two looks whether what the devices do is worth writing."""
USAGE_AT_LEAST = 60.0
"""Seconds after which it is written even if nothing changed."""


class NodeWriter:
    """Keeps the Node true to the inventory: at each change, and again when a write failed."""

    def __init__(self, client: Client, node: str, watch: Watch) -> None:
        self._client, self._node, self._watch = client, node, watch
        self._due = asyncio.Event()
        self._due.set()
        self._labels: set[str] = set()
        self.written = asyncio.Event()
        watch.subscribe(self._due.set)

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            await self._due.wait()
            self._due.clear()
            try:
                await self._write(self._watch.inventory)
                self.written.set()
            except ApiError as error:
                # A node that is about to register is waited for in silence.
                level = logging.DEBUG if isinstance(error, NotFound) else logging.WARNING
                log.log(level, "cannot state the devices of node %s: %s", self._node, error)
                await asyncio.sleep(RETRY)
                self._due.set()

    async def _write(self, found: Inventory) -> None:
        labels: Json = dict(stated.labels(found))
        gone = self._labels - set(labels)
        self._labels = set(labels)
        patch = {
            "metadata": {
                "annotations": stated.told(found),
                "labels": labels | dict.fromkeys(gone),
            }
        }
        node = await self._client.patch(NODES, self._node, patch)
        if node.metadata.labels.get(names.NODE_KIND_LABEL) == "process":
            amounts = {name: str(count) for name, count in stated.allocatable(found).items()}
            status = {"capacity": amounts, "allocatable": amounts}
            await patch_status(self._client, NODES, node.metadata, status)


class UsageWriter:
    """Keeps the node's DeviceUsage at most ten seconds old while something changes."""

    def __init__(
        self,
        client: Client,
        node: str,
        watch: Watch,
        shown: Callable[[], list[Shown]],
        *,
        uses: Callable[[], list[Use]] = list,
        accounts: Accounts | None = None,
    ) -> None:
        self._client, self._node, self._watch = client, node, watch
        self._shown, self._uses = shown, uses
        self._told: list[GpuUsage] | None = None
        self._told_shares: list[ShareUsage] = []
        self._accounts = accounts or Accounts()
        self._at = 0.0

    async def run(self) -> None:
        """Write until cancelled."""
        await self._watch.sampled.wait()
        while True:
            cards = self._watch.inventory.cards
            fresh = usage(cards, self._shown())
            shares = self._accounts.usage(self._uses(), cards, time.monotonic())
            old = time.monotonic() - self._at > USAGE_AT_LEAST
            changed = self._told is None or differs(fresh, self._told)
            if fresh and (changed or old or shares != self._told_shares):
                try:
                    await self._write(fresh, shares)
                except ApiError as error:
                    level = logging.DEBUG if isinstance(error, NotFound) else logging.WARNING
                    log.log(level, "cannot write DeviceUsage %s: %s", self._node, error)
                else:
                    self._told, self._at = fresh, time.monotonic()
                    self._told_shares = shares
            await asyncio.sleep(USAGE_EVERY)

    async def _write(self, gpus: list[GpuUsage], shares: list[ShareUsage]) -> None:
        body: Json = {
            "time": show(time.time()),
            "gpus": to_builtins(gpus),
            "shares": to_builtins(shares),
        }
        try:
            await self._client.patch(DEVICE_USAGES, self._node, body)
        except NotFound:
            node = await self._client.get(NODES, self._node)
            owner = {"apiVersion": "v1", "kind": "Node", "name": self._node}
            meta = {"name": self._node, "ownerReferences": [{**owner, "uid": node.metadata.uid}]}
            whole = {"apiVersion": DEVICE_USAGES.api_version, "kind": DEVICE_USAGES.kind, **body}
            with contextlib.suppress(AlreadyExists):
                await self._client.create(DEVICE_USAGES, {**whole, "metadata": meta})
