"""A node that the cloud takes back: what runs there leaves, and other nodes come for it."""

from __future__ import annotations

from tests.support.apiserver import ApiServer
from tests.support.pool_parts import lockstep, pool_nodes, submit
from tests.support.waiting import eventually

from lockstep.api.core import NODES, PODS
from lockstep.api.names import RECLAIM_TAINT
from lockstep.api.node_pool import NODE_POOLS
from lockstep.kube.client import Client
from lockstep.nodes.simulated.pools import parse_pool

PATIENCE = 60.0


async def standing(client: Client) -> dict[str, str]:
    """Return by node the uid of it where a pod of the job runs."""
    pods = (await client.list(PODS, "default")).items
    used = {pod.spec.node_name for pod in pods if pod.status.phase == "Running"}
    nodes = await pool_nodes(client, "gpu")
    return {n.metadata.name: n.metadata.uid for n in nodes if n.metadata.name in used}


async def test_what_runs_there_moves_to_another_node(any_server: ApiServer) -> None:
    async with lockstep(any_server) as client:
        await client.create(NODE_POOLS, parse_pool("gpu=0..4x8,idle=1h"))
        await submit(client, "big", 2, simulated=True)
        found: dict[str, str] = {}

        async def runs() -> bool:
            found.clear()
            found.update(await standing(client))
            return len(found) == 2

        await eventually(runs, PATIENCE, "the job runs on two nodes")
        gone = min(found)
        uid = found[gone]
        node = await client.get(NODES, gone)
        taints = [
            *({"key": t.key, "value": t.value, "effect": t.effect} for t in node.spec.taints),
            {"key": RECLAIM_TAINT, "effect": "NoSchedule"},
        ]
        await client.patch(NODES, gone, {"spec": {"taints": taints}})

        async def elsewhere() -> bool:
            now = await standing(client)
            left = {one.metadata.uid for one in await pool_nodes(client, "gpu")}
            return len(now) == 2 and uid not in now.values() and uid not in left

        await eventually(elsewhere, PATIENCE, "the job runs without the node, which is gone")
