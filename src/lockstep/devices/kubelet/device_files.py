"""Hands out device files that a ConfigMap names: FPGAs, TPUs, whatever is below ``/dev``."""

from __future__ import annotations

import asyncio
import glob
import logging
import stat
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Final

from lockstep.api.core import CONFIG_MAPS, NODES, ConfigMap
from lockstep.api.names import SYSTEM_NAMESPACE
from lockstep.compat.vendors import VENDORS
from lockstep.devices.core.model import Inventory
from lockstep.devices.core.rows import CONFIG, KEY, BadRow, Row, cards, in_order, rows
from lockstep.devices.kubelet.plugin import Plugin
from lockstep.kube.cache import Change
from lockstep.kube.client import Client
from lockstep.kube.informer import Informer

log = logging.getLogger(__name__)

LOOK_EVERY: Final = 5.0
"""Seconds between two looks which files there are."""


class Files:
    """The devices of one row, as a plugin offers them."""

    def __init__(self, row: Row) -> None:
        self._row = row
        self._listeners: list[Callable[[], None]] = []
        self.inventory = Inventory(cards=cards(row, glob.glob, is_device))

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call *listener* whenever files come or go."""
        self._listeners.append(listener)

    async def run(self) -> None:
        """Look for files until cancelled."""
        while True:
            await asyncio.sleep(LOOK_EVERY)
            found = cards(self._row, glob.glob, is_device)
            if found != self.inventory.cards:
                self.inventory = Inventory(cards=found)
                for listener in self._listeners:
                    listener()


class DeviceFiles:
    """One plugin for each row of the ConfigMap; a row that goes or changes ends its plugin."""

    def __init__(self, client: Client, node: str, kubelet: Path) -> None:
        self._client, self._node, self._kubelet = client, node, kubelet
        self._running: dict[str, tuple[Row, asyncio.Task[None]]] = {}
        self._informer: Informer[ConfigMap] = Informer(
            client,
            CONFIG_MAPS,
            namespace=SYSTEM_NAMESPACE,
            field_selector=f"metadata.name={CONFIG}",
        )

    async def run(self) -> None:
        """Follow the ConfigMap until cancelled."""
        cancel = self._informer.subscribe(self._changed)
        try:
            await self._informer.run()
        finally:
            cancel()
            for _, task in self._running.values():
                task.cancel()

    def _changed(self, change: Change[ConfigMap]) -> None:
        text = change.new.data.get(KEY, "") if change.new is not None else ""
        try:
            wanted = {row.resource: row for row in rows(text, (v.resource for v in VENDORS))}
        except BadRow as error:
            log.error("%s; what was handed out before goes on", error)
            return
        for resource, (row, task) in list(self._running.items()):
            if wanted.get(resource) != row:
                task.cancel()
                del self._running[resource]
        for resource, row in wanted.items():
            if resource not in self._running:
                task = asyncio.create_task(self._hand_out(row), name=resource)
                self._running[resource] = row, task

    async def _hand_out(self, row: Row) -> None:
        files = Files(row)
        plugin = Plugin(files, row.resource, self._kubelet, _prefer)
        node = await self._client.get(NODES, self._node)
        if row.resource in node.status.capacity and not plugin.was_here:
            log.error(
                "another device plugin hands out %s on this node; Lockstep stands back until the "
                "agent is started again, or use another name in %s",
                row.resource,
                CONFIG,
            )
            return
        await asyncio.gather(plugin.run(), files.run())


async def _prefer(available: Collection[str], must: Sequence[str], size: int) -> list[str]:
    return in_order(available, must, size)


def is_device(path: str) -> bool:
    """Return whether a path is a character device: disks are never handed out this way."""
    try:
        return stat.S_ISCHR(Path(path).stat().st_mode)
    except OSError:
        return False
