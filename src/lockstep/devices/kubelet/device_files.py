"""Hands out device files that a ConfigMap names: FPGAs, TPUs, any file below ``/dev``."""

from __future__ import annotations

import asyncio
import glob
import logging
import stat
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Final

from lockstep.api.core import CONFIG_MAPS, ConfigMap
from lockstep.api.names import SYSTEM_NAMESPACE
from lockstep.compat.vendors import VENDORS
from lockstep.devices.core.model import Inventory
from lockstep.devices.core.rows import CONFIG, KEY, BadRow, Row, cards, in_order, rows
from lockstep.devices.kubelet.plugin import Plugin
from lockstep.devices.kubelet.plugins import Plugins, serve
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
        self._plugins: Plugins[Row] = Plugins(self._hand_out)
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
            self._plugins.end()

    def _changed(self, change: Change[ConfigMap]) -> None:
        text = change.new.data.get(KEY, "") if change.new is not None else ""
        try:
            wanted = {row.resource: row for row in rows(text, (v.resource for v in VENDORS))}
        except BadRow as error:
            log.error("%s; what was handed out before goes on", error)
            return
        self._plugins.keep(wanted)

    async def _hand_out(self, row: Row) -> None:
        files = Files(row)
        plugin = Plugin(files, row.resource, self._kubelet, _prefer)
        looking = asyncio.ensure_future(files.run())
        try:
            await serve(self._client, self._node, plugin, CONFIG)
        finally:
            looking.cancel()


async def _prefer(available: Collection[str], must: Sequence[str], size: int) -> list[str]:
    return in_order(available, must, size)


def is_device(path: str) -> bool:
    """Return whether a path is a character device: disks are never handed out this way."""
    try:
        return stat.S_ISCHR(Path(path).stat().st_mode)
    except OSError:
        return False
