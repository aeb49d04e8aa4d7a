"""Nodes that only pretend: Node objects that ``lockstep simulate-nodes`` keeps alive."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from lockstep.api import names, timestamp
from lockstep.api.core import NODES
from lockstep.api.devices import Device
from lockstep.api.node_pool import PoolRequest
from lockstep.api.simulated import SIMULATED
from lockstep.kube.client import Client
from lockstep.kube.errors import AlreadyExists, ApiError, NotFound
from lockstep.pools.core.pool import Pool
from lockstep.pools.providers.contract import Presence, ProviderError, taints

_DEVICES = uuid.UUID("6f1a1c53-2f0f-4c6b-9d5e-6c6f636b7374")


class Simulated:
    """The provider of simulated nodes."""

    removes_nodes = True

    def __init__(self, client: Client) -> None:
        self._client = client

    async def create(self, pool: Pool, request: PoolRequest, slots: Sequence[int]) -> None:
        """Create the Node objects, not ready; the simulation makes them ready when it is time."""
        for slot in slots:
            try:
                await self._client.create(NODES, node_object(pool, request, slot, time.time()))
            except AlreadyExists:
                continue
            except ApiError as error:
                raise ProviderError(f"node {pool.node_name(slot)}: {error}") from error

    async def delete(self, pool: Pool, slots: Mapping[int, str]) -> None:
        """Delete the Node objects."""
        for slot, name in slots.items():
            try:
                await self._client.delete(NODES, name or pool.node_name(slot))
            except NotFound:
                continue
            except ApiError as error:
                raise ProviderError(f"node {name}: {error}") from error

    async def present(self, pool: Pool) -> Presence:
        """Return the slots that have a Node object."""
        selector = f"{names.POOL_LABEL}={pool.name},{names.NODE_KIND_LABEL}={SIMULATED}"
        try:
            listing = await self._client.list(NODES, label_selector=selector)
        except ApiError as error:
            raise ProviderError(str(error)) from error
        slots = (node.metadata.labels.get(names.POOL_SLOT_LABEL, "") for node in listing.items)
        return Presence(frozenset(int(slot) for slot in slots if slot.isdecimal()))


def node_object(pool: Pool, request: PoolRequest, slot: int, now: float) -> dict[str, Any]:
    """Return the Node object of a slot: not ready until the pool's time to arrive is over."""
    node = pool.node(slot)
    name = node.metadata.name
    annotations = dict(node.metadata.annotations)
    if names.DEVICES_ANNOTATION in annotations:
        annotations[names.DEVICES_ANNOTATION] = _own_devices(
            annotations[names.DEVICES_ANNOTATION], name
        )
    annotations[names.ARRIVES_ANNOTATION] = timestamp.show(now + pool.arrival)
    return {
        "metadata": {
            "name": name,
            "labels": dict(node.metadata.labels),
            "annotations": annotations,
        },
        "spec": {"providerID": f"simulated://{name}", "taints": taints(node.spec.taints, request)},
        "status": {
            "capacity": dict(node.status.capacity),
            "allocatable": dict(node.status.allocatable),
            "conditions": [
                {
                    "type": "Ready",
                    "status": "False",
                    "reason": "Arriving",
                    "message": "the simulated node is on its way",
                    "lastTransitionTime": timestamp.show(now),
                }
            ],
        },
    }


def _own_devices(text: str, node: str) -> str:
    """Return devices with ids of their own: those of the template are the same on all nodes."""
    try:
        devices = msgspec.json.decode(text, type=list[Device])
    except msgspec.MsgspecError:
        return text
    own = [
        msgspec.structs.replace(
            one, uuid=f"{one.kind.upper()}-{uuid.uuid5(_DEVICES, f'{node}/{one.kind}/{one.index}')}"
        )
        for one in devices
    ]
    return msgspec.json.encode(own).decode()
