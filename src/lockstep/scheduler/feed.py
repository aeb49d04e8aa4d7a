"""From the informers' changes to the cluster's state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lockstep.api.core import NODES, PODS, PRIORITY_CLASSES
from lockstep.api.gang import GANGS
from lockstep.api.queue import QUEUES
from lockstep.api.resource import Resource
from lockstep.api.topology import TOPOLOGIES
from lockstep.kube.cache import Change
from lockstep.kube.informer import Informer
from lockstep.kube.manager import Manager
from lockstep.scheduler.core.cluster import Cluster

WATCHED: tuple[Resource[Any], ...] = (
    TOPOLOGIES,
    PRIORITY_CLASSES,
    QUEUES,
    NODES,
    GANGS,
    PODS,
)


class Feed:
    """The informers that the scheduler decides by."""

    def __init__(self, manager: Manager) -> None:
        self._informers: dict[str, Informer[Any]] = {
            res.plural: manager.informer(res) for res in WATCHED
        }

    def informer(self, res: Resource[Any]) -> Informer[Any]:
        """Return the informer of one of the watched resources."""
        return self._informers[res.plural]

    def attach(self, cluster: Cluster, wake: Callable[[], None]) -> Callable[[], None]:
        """Fill *cluster* with what there is and keep it so; return how to stop that."""
        cancels = [
            self._informers[res.plural].subscribe(_handler(cluster, res, wake)) for res in WATCHED
        ]

        def detach() -> None:
            for cancel in cancels:
                cancel()

        return detach


def _handler(
    cluster: Cluster, res: Resource[Any], wake: Callable[[], None]
) -> Callable[[Change[Any]], None]:
    setters: dict[str, Callable[[Any], None]] = {
        PODS.plural: cluster.set_pod,
        NODES.plural: cluster.set_node,
        GANGS.plural: cluster.set_gang,
        TOPOLOGIES.plural: cluster.set_topology,
        PRIORITY_CLASSES.plural: cluster.set_priority_class,
        QUEUES.plural: cluster.set_queue,
    }
    removers: dict[str, Callable[..., None]] = {
        PODS.plural: cluster.remove_pod,
        NODES.plural: cluster.remove_node,
        GANGS.plural: cluster.remove_gang,
        TOPOLOGIES.plural: cluster.remove_topology,
        PRIORITY_CLASSES.plural: cluster.remove_priority_class,
        QUEUES.plural: cluster.remove_queue,
    }
    set_, remove = setters[res.plural], removers[res.plural]

    def handle(change: Change[Any]) -> None:
        if change.new is not None:
            set_(change.new)
        elif change.old is not None:
            meta = change.old.metadata
            if res.namespaced:
                remove(meta.namespace, meta.name)
            else:
                remove(meta.name)
        wake()

    return handle
