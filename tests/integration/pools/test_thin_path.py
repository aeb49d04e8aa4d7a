"""A gang waits, its pool grows by just what it needs, and is empty again when it has ended."""

from __future__ import annotations

from tests.support.apiserver import ApiServer
from tests.support.pool_parts import end, lockstep, pool_nodes, submit
from tests.support.waiting import eventually

from lockstep.api.gang import GANGS
from lockstep.api.names import HELD_TAINT, LEAF_LABEL
from lockstep.api.node_pool import NODE_POOLS
from lockstep.nodes.simulated.pools import parse_pool

PATIENCE = 60.0


async def test_a_pool_grows_for_a_gang_and_shrinks_after_it(any_server: ApiServer) -> None:
    async with lockstep(any_server) as client:
        pool = parse_pool("gpu=0..8x8,nodes-per-leaf=4,idle=1s")
        await client.create(NODE_POOLS, pool)
        await submit(client, "big", 4, simulated=True, topology={"required": "leaf"})

        async def running() -> bool:
            gangs = (await client.list(GANGS, "default")).items
            return [gang.status.phase for gang in gangs] == ["Running"]

        await eventually(running, PATIENCE, "the gang runs")
        nodes = await pool_nodes(client, "gpu")
        assert len(nodes) == 4
        assert len({node.metadata.labels[LEAF_LABEL] for node in nodes}) == 1

        async def open_to_all() -> bool:
            there = await pool_nodes(client, "gpu")
            return not any(t.key == HELD_TAINT for node in there for t in node.spec.taints)

        await eventually(open_to_all, PATIENCE, "the nodes are held no more")
        await end(client, "big")

        async def empty() -> bool:
            return not await pool_nodes(client, "gpu")

        await eventually(empty, PATIENCE, "the pool is empty")

        async def told() -> bool:
            status = (await client.get(NODE_POOLS, "gpu")).status
            return (status.nodes, status.coming, status.requests) == (0, 0, [])

        await eventually(told, PATIENCE, "the pool says so")
