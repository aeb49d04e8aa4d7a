"""``lockstep pool``: list, describe and explain node pools."""

from __future__ import annotations

import asyncio
import time
from typing import Annotated

from lockstep.api.core import NODES
from lockstep.api.names import POOL_LABEL
from lockstep.api.node_pool import NODE_POOLS, NodePool
from lockstep.api.price_list import PRICE_LISTS
from lockstep.cli import kinds
from lockstep.cli.app import App
from lockstep.cli.choice import Choice
from lockstep.cli.connect import OfCluster, Session, run
from lockstep.cli.failure import CommandFailed
from lockstep.cli.listing import list_all, page
from lockstep.cli.options import Cluster, Output
from lockstep.cli.output import Format
from lockstep.kube.errors import Forbidden, NotFound

app = App("Node pools: nodes that exist only while gangs need them.")

Name = Annotated[str, "Name of the pool."]


@app.command("list")
async def list_(session: OfCluster, *, output: Output = Format.TABLE) -> None:
    """List the node pools with what they have and cost.

    Example: lockstep pool list
    """
    await list_all(session, "nodepool", NODE_POOLS, Choice(), output)


@app.command()
def describe(name: Name, *, target: Cluster) -> None:
    """Show everything about a node pool.

    Example: lockstep pool describe gpu
    """
    wanted = kinds.Reference("nodepool", name, NODE_POOLS)
    for line in run(target, lambda session: page(session, wanted)):
        print(line)


@app.command()
def explain(name: Name, *, target: Cluster) -> None:
    """Say what a pool has and costs, what it did and why, and what it would do now for each gang
    that waits.

    Example: lockstep pool explain gpu
    """
    for line in run(target, lambda session: _explain(session, name)):
        print(line)


async def _explain(session: Session, name: str) -> list[str]:
    from lockstep.cli.state import read_cluster
    from lockstep.cli.views.pools import explanation
    from lockstep.insight.cost.prices import read
    from lockstep.pools.core.growth import grow
    from lockstep.pools.core.pool import Pool, seen
    from lockstep.pools.core.prices import node_hour

    client = session.client
    listed, nodes, cluster = await asyncio.gather(
        client.list(NODE_POOLS),
        client.list(NODES, label_selector=POOL_LABEL),
        read_cluster(client),
    )
    if all(pool.metadata.name != name for pool in listed.items):
        raise CommandFailed(f"there is no node pool {name}", hint="lockstep pool list")
    try:
        lists = (await client.list(PRICE_LISTS)).items
    except (Forbidden, NotFound):
        lists = []
    prices, _ = read(lists)
    now = time.time()

    def view(pool: NodePool) -> Pool:
        own = [
            n for n in nodes.items if n.metadata.labels.get(POOL_LABEL, "") == pool.metadata.name
        ]
        return seen(pool, own, node_hour(pool, prices, now))

    pools = [view(pool) for pool in listed.items]
    growth = grow(cluster, pools, now)
    mine = next(pool for pool in pools if pool.name == name)
    return explanation(mine, growth, prices.currency)
