"""Publishes the node's cards as a ResourceSlice, and the DeviceClass that claims name."""

from __future__ import annotations

import asyncio
import contextlib
import logging

from lockstep.api.claims import DEVICE_CLASSES, DRA_GROUP, RESOURCE_SLICES, ResourceSlice
from lockstep.api.core import NODES
from lockstep.devices.core import slices
from lockstep.devices.core.model import Inventory
from lockstep.devices.watching import Watch
from lockstep.kube.cache import Change
from lockstep.kube.client import Client
from lockstep.kube.errors import AlreadyExists, ApiError, NotFound
from lockstep.kube.informer import Informer

log = logging.getLogger(__name__)

RETRY = 1.0
LOOK_AGAIN = 60.0
"""Seconds after which a server without device claims is asked again whether it has them now."""


class SliceWriter:
    """Keeps the slice true to the inventory: at each change, and again when a write failed.

    A kubelet that starts, or has not heard of the driver for a while, deletes the slices of its
    node: the slice is followed, and written again when it is gone.
    """

    def __init__(self, client: Client, node: str, watch: Watch) -> None:
        self._client, self._node, self._watch = client, node, watch
        self._due = asyncio.Event()
        self._due.set()
        watch.subscribe(self._due.set)
        self._informer: Informer[ResourceSlice] = Informer(
            client,
            RESOURCE_SLICES,
            field_selector=f"metadata.name={slices.slice_name(node)}",
        )

    async def run(self) -> None:
        """Write until cancelled."""
        served = False
        while not served:
            served = await self._served()
            if not served:
                await asyncio.sleep(LOOK_AGAIN)
        self._informer.subscribe(self._followed)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._informer.run())
            group.create_task(self._keep())

    def _followed(self, change: Change[ResourceSlice]) -> None:
        if change.new is None:
            self._due.set()

    async def _keep(self) -> None:
        while True:
            await self._due.wait()
            self._due.clear()
            try:
                await self._write(self._watch.inventory)
            except ApiError as error:
                # A node that is about to register is waited for in silence.
                level = logging.DEBUG if isinstance(error, NotFound) else logging.WARNING
                log.log(level, "cannot publish the devices of %s: %s", self._node, error)
                await asyncio.sleep(RETRY)
                self._due.set()

    async def _served(self) -> bool:
        try:
            await self._client.get_raw(f"/apis/{DRA_GROUP}/v1")
        except ApiError:
            return False
        return True

    async def _write(self, found: Inventory) -> None:
        if not slices.by_name(found):
            with contextlib.suppress(NotFound):
                await self._client.delete(RESOURCE_SLICES, slices.slice_name(self._node))
            return
        with contextlib.suppress(AlreadyExists):
            await self._client.create(DEVICE_CLASSES, slices.class_of())
        node = await self._client.get(NODES, self._node)
        body = slices.slice_of(self._node, node.metadata.uid, found)
        try:
            await self._client.create(RESOURCE_SLICES, body)
        except AlreadyExists:
            meta = {"ownerReferences": body["metadata"]["ownerReferences"]}
            change = {"metadata": meta, "spec": {"devices": body["spec"]["devices"]}}
            await self._client.patch(RESOURCE_SLICES, slices.slice_name(self._node), change)
