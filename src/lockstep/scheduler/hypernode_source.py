"""Volcano's HyperNodes, where the server has them: nodes and tiers reach the state through here."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from lockstep.api.core import Node
from lockstep.compat.hypernodes import HYPERNODES, TOPOLOGY_NAME, HyperNode, HyperNodes
from lockstep.kube.cache import Change
from lockstep.kube.client import Client
from lockstep.kube.informer import Informer
from lockstep.scheduler.core.state.cluster import Cluster

log = logging.getLogger(__name__)

GATHER = 0.1
"""Seconds in which changes gather before all nodes are looked through."""


class HyperNodeSource:
    """Gives nodes the domains that HyperNodes put them in, and the state their tiers."""

    def __init__(self, client: Client, cluster: Cluster, wake: Callable[[], None]) -> None:
        self._cluster = cluster
        self._wake = wake
        self._known = HyperNodes()
        self._informer: Informer[HyperNode] = Informer(client, HYPERNODES, optional=True)
        self._nodes: dict[str, Node] = {}
        self._changed = asyncio.Event()

    def set_node(self, node: Node) -> None:
        """Take in a node, new or changed."""
        self._nodes[node.metadata.name] = node
        self._cluster.set_node(self._known.labelled(node))

    def remove_node(self, name: str) -> None:
        """Forget a node."""
        self._nodes.pop(name, None)
        self._known.forget(name)
        self._cluster.remove_node(name)

    async def run(self, known: asyncio.Event) -> None:
        """Follow HyperNodes until cancelled; *known* is set once all that there are count."""
        cancel = self._informer.subscribe(self._take)
        following = asyncio.create_task(self._informer.run())
        try:
            await self._informer.wait_synced()
            self._apply()
            known.set()
            while True:
                await self._changed.wait()
                await asyncio.sleep(GATHER)
                self._apply()
        finally:
            cancel()
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)

    def _take(self, change: Change[HyperNode]) -> None:
        if change.new is not None:
            self._known.set(change.new)
        elif change.old is not None:
            self._known.remove(change.old.metadata.name)
        self._changed.set()

    def _apply(self) -> None:
        """Give all nodes their domains of now."""
        self._changed.clear()
        for name, problem in self._known.problems.items():
            log.warning("HyperNode %s: %s", name, problem)
        topology = self._known.topology()
        if topology is None:
            self._cluster.remove_topology(TOPOLOGY_NAME)
        else:
            self._cluster.set_topology(topology)
        for node in self._nodes.values():
            self._cluster.set_node(self._known.labelled(node))
        self._wake()
