"""Lockstep's parts around node pools, in the test's process, each with its own account."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

from tests.support import parts
from tests.support.apiserver import ApiServer

from lockstep.api.core import NODES, PODS, Node
from lockstep.api.gang import GANGS
from lockstep.api.names import POOL_LABEL
from lockstep.api.queue import QUEUES
from lockstep.api.topology import DEFAULT_TOPOLOGY, TOPOLOGIES
from lockstep.api.training import TRAINING_JOBS
from lockstep.api.wire import to_builtins
from lockstep.jobs.main import add_jobs
from lockstep.kube.client import Client
from lockstep.kube.config import ClusterConfig
from lockstep.kube.crds import ensure_crds
from lockstep.kube.errors import AlreadyExists, NotFound
from lockstep.nodes.simulated.simulation import Simulation
from lockstep.pools.main import add_pools
from lockstep.runtime.manager import Manager

PATIENCE = 60.0


async def controllers(client: Client, ready: Callable[[str], None]) -> None:
    """Control jobs and pools."""
    manager = Manager(client, name="controllers", leader_elect=False)
    add_jobs(manager)
    add_pools(manager)
    await manager.run(ready)


async def simulate_nodes(client: Client, ready: Callable[[str], None]) -> None:
    """Simulate the nodes of pools alone."""
    await Simulation(client, []).run(lambda: ready("nodes"))


PARTS = {
    "scheduler": parts.scheduler,
    "controllers": controllers,
    "simulate-nodes": simulate_nodes,
}


@contextlib.asynccontextmanager
async def lockstep(server: ApiServer) -> AsyncIterator[Client]:
    """Run the parts in this process, each with the account that it has on a cluster."""
    async with contextlib.AsyncExitStack() as stack:
        client = await stack.enter_async_context(server.client())
        await ensure_crds(client)
        for res, obj in ((TOPOLOGIES, to_builtins(DEFAULT_TOPOLOGY)), (QUEUES, QUEUE)):
            with contextlib.suppress(AlreadyExists):
                await client.create(res, obj)
        tasks = []
        for name, part in PARTS.items():
            account = server.data / "kubeconfigs" / f"{name}.kubeconfig"
            own = await stack.enter_async_context(Client(ClusterConfig.load(account)))
            tasks.append(asyncio.create_task(part(own, lambda _: None)))
        try:
            yield client
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


QUEUE = {"metadata": {"name": "default"}, "spec": {}}


async def submit(client: Client, name: str, workers: int, *, gpus: int = 8, **spec: Any) -> None:
    """Submit a job, of whole nodes unless it is said otherwise."""
    container = {"name": "main", "image": "none", "command": ["train"]}
    resources = {what: {"nvidia.com/gpu": gpus} for what in ("limits", "requests")}
    template = {"spec": {"containers": [{**container, "resources": resources}]}}
    role = {"name": "worker", "replicas": workers, "template": template}
    body = {"framework": "plain", "roles": [role], **spec}
    await client.create(TRAINING_JOBS, {"metadata": {"name": name}, "spec": body})


async def end(client: Client, name: str) -> None:
    """Delete a job and what belongs to it, as the collector of garbage would."""
    await client.delete(TRAINING_JOBS, name, "default")
    for res in (GANGS, PODS):
        for one in (await client.list(res, "default")).items:
            with contextlib.suppress(NotFound):
                await client.delete(res, one.metadata.name, "default", grace_seconds=0)


async def pool_nodes(client: Client, pool: str) -> list[Node]:
    """Return the nodes of a pool."""
    return (await client.list(NODES, label_selector=f"{POOL_LABEL}={pool}")).items
