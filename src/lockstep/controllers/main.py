"""The process ``lockstep controllers``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Final

from lockstep.api.names import CONTROLLERS_LEASE, SYSTEM_NAMESPACE
from lockstep.compat import dialects
from lockstep.compat.kubeflow.profile import PROFILES
from lockstep.data.main import add_data
from lockstep.health.lifecycle import add_lifecycle
from lockstep.insight.main import add_history
from lockstep.kube.client import Client
from lockstep.kube.config import ClusterConfig
from lockstep.kube.crds import ensure_crds, ensure_foreign
from lockstep.kube.endpoints import Ports
from lockstep.kube.manager import Manager
from lockstep.notebooks.installed import Installed
from lockstep.notebooks.main import add_notebooks
from lockstep.pools.main import add_pools
from lockstep.serve.main import add_serving
from lockstep.tenants.main import add_profiles
from lockstep.workloads.main import add_workloads

CAPABILITIES: Final = (
    "lockstep.jobs.main:add_jobs",
    "lockstep.jobs.foreign:add_foreign",
    "lockstep.jobs.foreign_scaling:add_scaling",
    "lockstep.tenants.main:add_teams",
    "lockstep.insight.main:add_advice",
    "lockstep.pipelines.main:add_pipelines",
    "lockstep.health.remediation.controller:add_remediation",
    "lockstep.health.remediation.lemons:add_lemons",
    "lockstep.devices.network.planner:add_addresses",
)
"""Module and function of each capability's controllers; the function takes the manager."""


async def run(
    *,
    kubeconfig: Path | None,
    identity: str | None = None,
    leader_elect: bool = True,
    lease_namespace: str = SYSTEM_NAMESPACE,
    ports: Ports | None = None,
    install_dialects: Sequence[str] = (),
    records: Path | None = None,
    closed_days: Path | None = None,
    gateway: str = "",
    environments: str = "",
    pool_commands: Path | None = None,
    node_lifecycle: bool = False,
    ready: Callable[[str], None],
) -> None:
    """Run all controllers until SIGINT or SIGTERM; call *ready* once they are synced.

    *install_dialects* are the dialects whose CRDs are created where they are missing. Usage is
    recorded in the file *records*, if one is named, and written as Parquet into the folder
    *closed_days* day by day, if one is named. *gateway* is the URL at which servers of
    notebooks reach the gateway of kernels, *environments* the directory of each node in which
    packages are built. Node pools may name programs in the directory
    *pool_commands*. With *node_lifecycle* nodes that fall silent are taken care of, and workloads
    of Kubernetes' own kinds are served, which is for servers without kube-controller-manager.

    Raises:
        ConfigError: when no cluster is configured.
        ApiError: when it cannot be reached at the start.
        sqlite3.Error: when *records* cannot be used.
    """
    async with Client(ClusterConfig.load(kubeconfig)) as client:
        await ensure_crds(client)
        await ensure_foreign(client, dialects.manifests(install_dialects))
        manager = Manager(
            client,
            name=CONTROLLERS_LEASE,
            identity=identity,
            leader_elect=leader_elect,
            lease_namespace=lease_namespace,
            ports=ports,
        )
        add_all(manager)
        add_notebooks(manager, gateway, environments)
        add_profiles(manager, Installed(client, PROFILES).ours)
        add_pools(manager, pool_commands)
        # Without kube-controller-manager the server is one machine's own, and so are its teams.
        add_data(manager, open_to_all=node_lifecycle)
        # Datasets are shown to pods by process nodes, which such a server has.
        add_serving(manager, cached=node_lifecycle)
        if node_lifecycle:
            add_lifecycle(manager)
            add_workloads(manager)
        add_history(manager, records, closed_days)
        await manager.run(ready)


def add_all(manager: Manager) -> None:
    """Run the controllers of every capability while *manager* leads."""
    for capability in CAPABILITIES:
        module, function = capability.split(":")
        getattr(import_module(module), function)(manager)
