"""The process that simulates nodes and the pods on them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from lockstep.kube.client import Client
from lockstep.kube.config import ClusterConfig
from lockstep.nodes.simulated.simulation import Simulation
from lockstep.nodes.simulated.spec import parse


async def run(
    *, kubeconfig: Path | None, spec: str | None, seed: int = 0, ready: Callable[[str], None]
) -> None:
    """Simulate the nodes that *spec* describes until cancelled; *seed* decides all chances.

    Nodes that NodePools have simulated come and go meanwhile; without *spec* there are only those.

    Raises:
        SpecError: when *spec* is wrong.
        ConfigError: when no API server is configured.
        ApiError: when the server refuses the nodes.
    """
    groups = parse(spec) if spec is not None else []
    nodes = sum(group.nodes for group in groups)
    gpus = sum(group.nodes * group.gpus for group in groups)
    async with Client(ClusterConfig.load(kubeconfig)) as client:
        simulation = Simulation(client, groups, seed=seed)
        await simulation.run(lambda: ready(f"{nodes} simulated nodes with {gpus} GPUs"))
