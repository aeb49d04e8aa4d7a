"""The state that the scheduler decides by, read once, for commands that think as it does."""

from __future__ import annotations

import asyncio

from lockstep.api.core import BUDGETS, NODES, PODS, PRIORITY_CLASSES
from lockstep.api.gang import GANGS
from lockstep.api.node_policy import NODE_POLICIES
from lockstep.api.queue import QUEUES
from lockstep.api.topology import TOPOLOGIES
from lockstep.compat.hypernodes import HYPERNODES, HyperNodes
from lockstep.kube.client import Client
from lockstep.kube.errors import Forbidden, NotFound
from lockstep.scheduler.core.runtime.offline import cluster_of
from lockstep.scheduler.core.state.cluster import Cluster


async def read_cluster(client: Client) -> Cluster:
    """Return the scheduler's state as the server's objects give it now."""
    nodes, pods, gangs, topologies, classes, policies = await asyncio.gather(
        client.list(NODES),
        client.list(PODS),
        client.list(GANGS),
        client.list(TOPOLOGIES),
        client.list(PRIORITY_CLASSES),
        client.list(NODE_POLICIES),
    )
    queues, budgets = await asyncio.gather(client.list(QUEUES), client.list(BUDGETS))
    known = await _hypernodes(client)
    derived = known.topology()
    return cluster_of(
        nodes=[known.labelled(node) for node in nodes.items],
        pods=pods.items,
        gangs=gangs.items,
        node_policies=policies.items,
        topologies=[*topologies.items, *([derived] if derived else [])],
        priority_classes=classes.items,
        queues=queues.items,
        budgets=budgets.items,
    )


async def _hypernodes(client: Client) -> HyperNodes:
    known = HyperNodes()
    try:
        found = await client.list(HYPERNODES)
    except (NotFound, Forbidden):  # no such kind, or none of this user's business
        return known
    for one in found.items:
        known.set(one)
    return known
