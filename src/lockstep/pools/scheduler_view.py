"""The scheduler's view of the cluster, kept beside the pools while there are any."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Any

from msgspec.structs import replace

from lockstep.api.core import NODES, PODS, Node, Pod
from lockstep.api.names import HELD_TAINT, POOL_LABEL
from lockstep.kube.informer import Informer
from lockstep.runtime.manager import Manager
from lockstep.scheduler.core.state.cluster import Cluster
from lockstep.scheduler.event_handlers import WATCHED, EventHandlers
from lockstep.scheduler.hypernode_source import HyperNodeSource

log = logging.getLogger(__name__)

NODE_INDEX = "node"
POOL_INDEX = "pool"
MIRROR_ANNOTATION = "kubernetes.io/config.mirror"


class _ClusterFeed(HyperNodeSource):
    """Lets nodes in without the taint that holds them: decisions know for whom they are held."""

    def set_node(self, node: Node) -> None:
        """Take in a node, new or changed."""
        taints = [taint for taint in node.spec.taints if taint.key != HELD_TAINT]
        super().set_node(replace(node, spec=replace(node.spec, taints=taints)))


class SchedulerView:
    """Nodes, pods, gangs and queues as the scheduler sees them."""

    def __init__(self, manager: Manager, wake: Callable[[], None]) -> None:
        self.cluster = Cluster()
        self._feed = EventHandlers(manager)
        self._cluster_feed = _ClusterFeed(manager.client, self.cluster, wake)
        self._wake = wake
        self.nodes: Informer[Node] = self._feed.informer(NODES)
        self.pods: Informer[Pod] = self._feed.informer(PODS)
        self.nodes.add_index(POOL_INDEX, _pool_of)
        self.pods.add_index(NODE_INDEX, _node_of)

    async def follow(self, known: asyncio.Event) -> None:
        """Keep the view up to date until cancelled; *known* is set once it is complete."""
        for resource in WATCHED:
            await self._feed.informer(resource).wait_synced()
        detach = self._feed.attach(self.cluster, self._cluster_feed, self._wake, _unreadable)
        try:
            await self._cluster_feed.run(known)
        finally:
            detach()

    def of_pool(self, pool: str) -> list[Node]:
        """Return the nodes of a pool."""
        return self.nodes.by_index(POOL_INDEX, pool)

    def on_node(self, node: str) -> list[Pod]:
        """Return the pods on a node that take part in whether it is idle."""
        return [pod for pod in self.pods.by_index(NODE_INDEX, node) if occupies(pod)]

    def keys_on(self, node: str) -> set[tuple[str, str]]:
        """Return namespace and name of those pods."""
        return {(pod.metadata.namespace, pod.metadata.name) for pod in self.on_node(node)}

    def busy(self, node: str) -> bool:
        """Return whether anything runs on a node that does not run on all of them."""
        return bool(self.on_node(node))


def occupies(pod: Pod) -> bool:
    """Return whether a pod takes part in whether its node is idle."""
    if pod.status.phase in ("Succeeded", "Failed"):
        return False
    meta = pod.metadata
    if any(owner.kind == "DaemonSet" for owner in meta.owner_references):
        return False
    return MIRROR_ANNOTATION not in meta.annotations


def _pool_of(node: Any) -> Iterable[str]:
    pool = node.metadata.labels.get(POOL_LABEL)
    return [pool] if pool else []


def _node_of(pod: Any) -> Iterable[str]:
    return [pod.spec.node_name] if pod.spec.node_name else []


def _unreadable(obj: Any, error: Exception) -> None:
    log.warning("%s cannot be read: %s", obj.metadata.name, error)
