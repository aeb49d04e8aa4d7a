"""The scheduler as a process."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

from lockstep.api.names import SCHEDULER_LEASE, SYSTEM_NAMESPACE
from lockstep.kube.client import Client
from lockstep.kube.config import ClusterConfig
from lockstep.kube.crds import ensure_crds
from lockstep.runtime.endpoints import Ports
from lockstep.runtime.manager import Manager
from lockstep.scheduler.event_handlers import EventHandlers
from lockstep.scheduler.loop import Scheduler
from lockstep.scheduler.metrics import Metrics


async def run(
    *,
    kubeconfig: Path | None,
    identity: str | None = None,
    leader_elect: bool = True,
    lease_namespace: str = SYSTEM_NAMESPACE,
    ports: Ports | None = None,
    names: Collection[str] = (),
    ready: Callable[[str], None],
) -> None:
    """Schedule pods against the API server that *kubeconfig* names, until told to stop.

    Pods of other schedulers' *names* are placed too. *ready* is called once the cluster's state has
    been read. With *leader_elect* several may run; one at a time decides, and each term starts from
    what the API server says.

    Raises:
        ConfigError: when no configuration is found or it cannot be used.
        ApiError: when the server cannot be reached at the start.
    """
    async with Client(ClusterConfig.load(kubeconfig)) as client:
        await ensure_crds(client)
        manager = Manager(
            client,
            name=SCHEDULER_LEASE,
            identity=identity,
            leader_elect=leader_elect,
            lease_namespace=lease_namespace,
            ports=ports,
        )
        add_scheduler(manager, names)
        await manager.run(ready)


def add_scheduler(manager: Manager, names: Collection[str] = ()) -> None:
    """Schedule while *manager* leads; each term begins with nothing but what the server says.

    Pods of schedulers called *names* are placed beside those of our own name.
    """
    feed, metrics = EventHandlers(manager), Metrics(manager.metrics.registry)
    recorder = manager.recorder()

    async def term() -> None:
        scheduler = Scheduler(manager.client, feed, recorder, metrics, names)
        await scheduler.run(manager.led_since)

    manager.add_task(term)
