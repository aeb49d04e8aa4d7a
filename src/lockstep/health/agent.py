"""The agent's part that follows the kernel log of its node."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from lockstep.api.node_health import Finding
from lockstep.health.core.findings import Key, added, findings_of
from lockstep.health.kernel_log import Source, opened
from lockstep.health.writing import add, load
from lockstep.kube.client import Client
from lockstep.kube.errors import ApiError, Conflict, NotFound

log = logging.getLogger(__name__)

EVERY: Final = 0.2
"""Seconds between two looks at the log."""
RETRY: Final = 1.0


class KernelLogPart:
    """Turns lines of the log into findings; *devices* are the node's by PCI address."""

    def __init__(
        self, client: Client, node: str, path: Path, devices: Callable[[], Mapping[str, str]]
    ) -> None:
        self._client, self._node, self._path, self._devices = client, node, path, devices
        self._pending: dict[Key, Finding] = {}

    async def run(self) -> None:
        """Follow the log until cancelled; one that may not be read is named once."""
        position = await self._position()
        try:
            source = opened(self._path, position)
        except OSError as error:
            log.warning("the kernel log %s is not followed: %s", self._path, error)
            return
        try:
            if source.position != position:
                await self._write(source)
            while True:
                self._read(source)
                if self._pending:
                    await self._write(source)
                await asyncio.sleep(EVERY)
        finally:
            source.close()

    async def _position(self) -> str:
        while True:
            try:
                return (await load(self._client, self._node)).spec.read
            except ApiError as error:
                self._complain(error)
            await asyncio.sleep(RETRY)

    def _read(self, source: Source) -> None:
        devices = self._devices()
        for found in findings_of(source.lines(), devices):
            log.warning("%s: %s", found.cause, found.evidence)
            added(self._pending, found)

    async def _write(self, source: Source) -> None:
        while True:
            try:
                await add(self._client, self._node, self._pending.values(), source.position)
            except Conflict:
                continue
            except ApiError as error:
                self._complain(error)
                await asyncio.sleep(RETRY)
            else:
                self._pending.clear()
                return

    def _complain(self, error: ApiError) -> None:
        # A node that is about to register is waited for in silence.
        level = logging.DEBUG if isinstance(error, NotFound) else logging.WARNING
        log.log(level, "the health of node %s: %s", self._node, error)
