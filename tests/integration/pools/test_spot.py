"""A job's minimum stands on nodes that nobody takes back, the rest on spot nodes."""

from __future__ import annotations

from pathlib import Path

import yaml
from tests.support.apiserver import ApiServer
from tests.support.pool_parts import lockstep, pool_nodes
from tests.support.waiting import eventually

from lockstep.api.core import PODS
from lockstep.api.node_pool import NODE_POOLS
from lockstep.api.training import TRAINING_JOBS
from lockstep.nodes.simulated.pools import parse_pool

PATIENCE = 180.0
EXAMPLE = Path(__file__).parents[3] / "examples" / "pools" / "spot.yaml"


async def test_the_rest_of_a_running_job_gets_spot_nodes(any_server: ApiServer) -> None:
    async with lockstep(any_server) as client:
        await client.create(NODE_POOLS, parse_pool("cheap=0..8x8,price=5,spot"))
        await client.create(NODE_POOLS, parse_pool("on-demand=0..4x8,price=20"))
        await client.create(TRAINING_JOBS, yaml.safe_load(EXAMPLE.read_text()))

        async def all_run() -> bool:
            pods = (await client.list(PODS, "default")).items
            where = {p.metadata.name: p.spec.node_name for p in pods if p.status.phase == "Running"}
            return {name[-1]: node.rpartition("-")[0] for name, node in where.items()} == {
                "0": "on-demand",
                "1": "on-demand",
                "2": "cheap",
                "3": "cheap",
            }

        await eventually(all_run, PATIENCE, "two run on each sort")
        assert [len(await pool_nodes(client, name)) for name in ("on-demand", "cheap")] == [2, 2]
