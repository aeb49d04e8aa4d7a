"""Keeps one device plugin for each resource that a configuration names."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final, Generic, TypeVar

from lockstep.api.core import NODES, Node
from lockstep.devices.kubelet.plugin import Plugin
from lockstep.kube.client import Client
from lockstep.kube.errors import ApiError, NotFound

log = logging.getLogger(__name__)

AGAIN: Final = 1.0
Stated = TypeVar("Stated")


class Plugins(Generic[Stated]):
    """Runs what *make* returns for each resource; one that goes or is stated anew ends first."""

    def __init__(self, make: Callable[[Stated], Coroutine[Any, Any, None]]) -> None:
        self._make = make
        self._running: dict[str, tuple[Stated, asyncio.Task[None]]] = {}

    def keep(self, wanted: Mapping[str, Stated]) -> None:
        """Run what is wanted, by resource, and nothing else."""
        for resource, (stated, task) in list(self._running.items()):
            if wanted.get(resource) != stated:
                task.cancel()
                del self._running[resource]
        for resource, stated in wanted.items():
            if resource not in self._running:
                task = asyncio.create_task(self._make(stated), name=resource)
                task.add_done_callback(_tell)
                self._running[resource] = stated, task

    def end(self) -> None:
        """End them all."""
        for _, task in self._running.values():
            task.cancel()
        self._running.clear()


async def serve(client: Client, node: str, plugin: Plugin, where: str) -> None:
    """Serve a plugin until cancelled, unless another one hands its resource out on this node."""
    found = await _registered(client, node)
    if plugin.resource in found.status.capacity and not plugin.was_here:
        log.error(
            "another device plugin hands out %s on this node; Lockstep stands back until the "
            "agent is started again, or use another name in %s",
            plugin.resource,
            where,
        )
        return
    await plugin.run()


async def _registered(client: Client, node: str) -> Node:
    """Return the Node, once its kubelet has registered it."""
    while True:
        try:
            return await client.get(NODES, node)
        except ApiError as error:
            level = logging.DEBUG if isinstance(error, NotFound) else logging.WARNING
            log.log(level, "cannot read node %s: %s; again", node, error)
            await asyncio.sleep(AGAIN)


def _tell(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("the device plugin of %s ended", task.get_name(), exc_info=error)
