"""The process ``lockstep controllers``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from lockstep.api.names import CONTROLLERS_LEASE, SYSTEM_NAMESPACE
from lockstep.compat import dialects
from lockstep.compat.kubeflow.profile import PROFILES
from lockstep.controllers.options import Options
from lockstep.data.main import add_data
from lockstep.devices.network.planner import add_addresses
from lockstep.dialects.controller import add_dialects
from lockstep.dialects.scaling import add_scaling
from lockstep.health.lifecycle import add_lifecycle
from lockstep.health.remediation.controller import add_remediation
from lockstep.health.remediation.lemons import add_lemons
from lockstep.health.silence import add_silence
from lockstep.insight.main import add_advice, add_history
from lockstep.jobs.main import add_jobs
from lockstep.kube.client import Client
from lockstep.kube.config import ClusterConfig
from lockstep.kube.crds import ensure_crds, ensure_foreign
from lockstep.notebooks.kind_ownership import KindOwnership
from lockstep.notebooks.main import add_notebooks
from lockstep.pipelines.main import add_pipelines
from lockstep.pools.main import add_pools
from lockstep.runtime.endpoints import Ports
from lockstep.runtime.manager import Manager
from lockstep.serve.main import add_serving
from lockstep.tenants.main import add_profiles, add_teams
from lockstep.workloads.main import add_workloads
from lockstep.workloads.volumes import add_local_volumes

Register = Callable[[Manager, Options], None]


def _add_one_machine(manager: Manager, options: Options) -> None:
    """Serve what kube-controller-manager and a provisioner of volumes serve on a cluster."""
    add_workloads(manager)
    if options.artefacts:  # no namespace begins with a dot
        add_local_volumes(manager, Path(options.artefacts, ".volumes"))


CONTROLLERS: Final[tuple[Register, ...]] = (
    lambda manager, _: add_jobs(manager),
    lambda manager, _: add_dialects(manager),
    lambda manager, _: add_scaling(manager),
    lambda manager, _: add_teams(manager),
    lambda manager, _: add_advice(manager),
    lambda manager, options: add_pipelines(manager, options.artefacts),
    lambda manager, _: add_remediation(manager),
    lambda manager, _: add_lemons(manager),
    lambda manager, _: add_addresses(manager),
    lambda manager, options: add_notebooks(manager, options.gateway, options.environments),
    lambda manager, _: add_profiles(manager, KindOwnership(manager.client, PROFILES).ours),
    lambda manager, options: add_pools(manager, options.pool_commands),
    # The embedded server is one machine's own, and so are its teams.
    lambda manager, options: add_data(manager, open_to_all=options.node_lifecycle),
    # Process nodes show datasets to pods; the embedded server has them.
    lambda manager, options: add_serving(manager, cached=options.node_lifecycle),
    lambda manager, options: (add_lifecycle if options.node_lifecycle else add_silence)(manager),
    lambda manager, options: _add_one_machine(manager, options) if options.node_lifecycle else None,
    lambda manager, options: add_history(manager, options.records, options.closed_days),
)
"""One function for each capability: it adds the capability's controllers to the manager."""


async def run(
    *,
    kubeconfig: Path | None,
    identity: str | None = None,
    leader_elect: bool = True,
    lease_namespace: str = SYSTEM_NAMESPACE,
    ports: Ports | None = None,
    install_dialects: Sequence[str] = (),
    options: Options,
    ready: Callable[[str], None],
) -> None:
    """Run all controllers until SIGINT or SIGTERM; call *ready* once they are synced.

    *install_dialects* are the dialects whose CRDs are created where they are missing.

    Raises:
        ConfigError: when no cluster is configured.
        ApiError: when it cannot be reached at the start.
        sqlite3.Error: when the file of records cannot be used.
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
        for register in CONTROLLERS:
            register(manager, options)
        await manager.run(ready)
