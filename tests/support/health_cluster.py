"""Controllers of health beside the scheduler and simulated nodes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

from tests.support.apiserver import ApiServer

from lockstep.health.remediation.controller import add_remediation
from lockstep.jobs.main import add_jobs
from lockstep.kube.client import Client
from lockstep.kube.config import ClusterConfig
from lockstep.kube.crds import ensure_crds
from lockstep.runtime.manager import Manager

PATIENCE = 60.0


async def controllers(client: Client, ready: Callable[[str], None]) -> None:
    """Control jobs and act on findings."""
    manager = Manager(client, name="controllers", leader_elect=False)
    add_jobs(manager)
    add_remediation(manager)
    await manager.run(ready)


@contextlib.asynccontextmanager
async def lockstep(server: ApiServer, **which: Any) -> AsyncIterator[Client]:
    """Run parts in this process, each with the account that it has on a cluster."""
    async with contextlib.AsyncExitStack() as stack:
        client = await stack.enter_async_context(server.client())
        await ensure_crds(client)
        tasks = []
        for name, part in which.items():
            account = server.data / "kubeconfigs" / f"{name.replace('_', '-')}.kubeconfig"
            own = await stack.enter_async_context(Client(ClusterConfig.load(account)))
            tasks.append(asyncio.create_task(part(own, lambda _: None)))
        try:
            yield client
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
