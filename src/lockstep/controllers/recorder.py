"""The process ``lockstep recorder``: the recorder of usage apart from the other controllers.

Its file lies on a volume of one node, where controllers move to another node as they please.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from lockstep.api.names import RECORDER_LEASE, SYSTEM_NAMESPACE
from lockstep.insight.main import add_history
from lockstep.kube.client import Client
from lockstep.kube.config import ClusterConfig
from lockstep.kube.crds import ensure_crds
from lockstep.runtime.endpoints import Ports
from lockstep.runtime.manager import Manager


async def run(
    *,
    kubeconfig: Path | None,
    records: Path,
    closed_days: Path | None = None,
    lease_namespace: str = SYSTEM_NAMESPACE,
    ports: Ports | None = None,
    ready: Callable[[str], None],
) -> None:
    """Record usage in the file *records* until cancelled, and days that are over in *closed_days*.

    Raises:
        ConfigError: when no cluster is configured.
        ApiError: when it cannot be reached at the start.
        sqlite3.Error: when *records* cannot be used.
    """
    async with Client(ClusterConfig.load(kubeconfig)) as client:
        await ensure_crds(client)
        manager = Manager(client, name=RECORDER_LEASE, lease_namespace=lease_namespace, ports=ports)
        add_history(manager, records, closed_days)
        await manager.run(ready)
