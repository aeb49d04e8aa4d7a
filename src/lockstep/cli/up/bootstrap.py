"""The objects that a new control plane begins with; applying them again changes nothing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection
from pathlib import Path
from typing import Any

from lockstep.api import crd
from lockstep.api.core import CRDS, NAMESPACES
from lockstep.api.meta import ObjectMeta
from lockstep.api.names import SYSTEM_NAMESPACE
from lockstep.api.node_pool import NodePool
from lockstep.api.presentation import PRESENTATIONS
from lockstep.api.queue import QUEUES, Queue
from lockstep.api.resource import Resource
from lockstep.api.topology import DEFAULT_TOPOLOGY, TOPOLOGIES
from lockstep.api.wire import to_builtins
from lockstep.cli.failure import CommandFailed
from lockstep.cli.up.pools import set_pools
from lockstep.cli.up.unsimulated import remove_unsimulated
from lockstep.kube.client import Client
from lockstep.kube.config import ClusterConfig
from lockstep.kube.errors import AlreadyExists, NotFound

SERVED_WITHIN = 15.0


async def bootstrap(
    kubeconfig: Path, *, simulated: Collection[str], pools: Collection[NodePool] = ()
) -> None:
    """Apply the CRDs, then create the default queue and, with *simulated* nodes, the topology.

    Simulated nodes and pools of earlier runs other than these are removed.

    Raises:
        CommandFailed: when a kind is not served in time.
    """
    async with Client(ClusterConfig.load(kubeconfig)) as client:
        for manifest in crd.manifests():
            await _apply(client, manifest)
        for shown in PRESENTATIONS:
            await _served(client, shown.resource)
        await _ensure(client, NAMESPACES, _named("v1", "Namespace", SYSTEM_NAMESPACE))
        await _ensure(client, QUEUES, to_builtins(Queue(metadata=ObjectMeta(name="default"))))
        await set_pools(client, pools)
        await remove_unsimulated(client, simulated, {pool.metadata.name for pool in pools})
        if simulated or pools:
            await _ensure(client, TOPOLOGIES, to_builtins(DEFAULT_TOPOLOGY))


async def _apply(client: Client, manifest: dict[str, Any]) -> None:
    try:
        await client.create(CRDS, manifest)
    except AlreadyExists:
        name = manifest["metadata"]["name"]
        await client.patch(CRDS, name, {"spec": manifest["spec"]})


async def _served(client: Client, res: Resource[Any]) -> None:
    end = time.monotonic() + SERVED_WITHIN
    while True:
        try:
            await client.get_raw(res.path(), {"limit": "1"})
            return
        except NotFound:
            if time.monotonic() > end:
                raise CommandFailed(
                    f"the API server does not serve {res.plural}.{res.group}"
                ) from None
            await asyncio.sleep(0.02)


async def _ensure(client: Client, res: Resource[Any], obj: dict[str, Any]) -> None:
    try:
        await client.create(res, obj)
    except AlreadyExists:
        return


def _named(api_version: str, kind: str, name: str) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}}
