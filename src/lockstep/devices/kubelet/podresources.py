"""Which container holds which devices, as kubelet tells on its PodResources socket."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Mapping
from pathlib import Path

import grpc

from lockstep.devices.core.allocation import Held
from lockstep.devices.kubelet.wire import podresources_pb2 as wire

log = logging.getLogger(__name__)

TIMEOUT = 5.0
CHECK_EVERY = 10.0
"""Seconds between two comparisons of records with what kubelet has, when nothing happens."""


async def next_look(granted: asyncio.Event) -> None:
    """Return when kubelet tells of what was *granted*, or when records are due to be compared."""
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(granted.wait(), CHECK_EVERY)
    granted.clear()
    await asyncio.sleep(0.2)  # kubelet tells of a grant a moment after it asked for it


def socket(kubelet: Path) -> Path:
    """Return where kubelet answers."""
    return kubelet / "pod-resources/kubelet.sock"


async def held(kubelet: Path, resource: str) -> Held:
    """Return the devices of *resource* that each container holds.

    Raises:
        grpc.aio.AioRpcError: when kubelet does not answer.
    """
    async with grpc.aio.insecure_channel(f"unix:{socket(kubelet)}") as channel:
        listed = channel.unary_unary(
            "/v1.PodResourcesLister/List",
            request_serializer=wire.ListPodResourcesRequest.SerializeToString,
            response_deserializer=wire.ListPodResourcesResponse.FromString,
        )
        answer = await listed(wire.ListPodResourcesRequest(), timeout=TIMEOUT)
    found = {}
    for pod in answer.pod_resources:
        containers: Mapping[str, list[str]] = {
            one.name: [
                identity
                for devices in one.devices
                if devices.resource_name == resource
                for identity in devices.device_ids
            ]
            for one in pod.containers
        }
        if any(containers.values()):
            found[pod.namespace, pod.name] = containers
    return found


async def held_if_told(kubelet: Path, resource: str) -> Held:
    """Return the same; nothing while kubelet does not answer, as it is asked again soon."""
    try:
        return await held(kubelet, resource)
    except grpc.aio.AioRpcError as error:
        log.debug("kubelet does not tell who holds %s: %s", resource, error)
        return {}
