"""From the informers' changes to the cluster's state."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Any

from lockstep.api.core import BUDGETS, NAMESPACES, NODES, PODS, PRIORITY_CLASSES
from lockstep.api.gang import GANGS
from lockstep.api.node_policy import NODE_POLICIES
from lockstep.api.queue import QUEUES
from lockstep.api.resource import Resource
from lockstep.api.topology import TOPOLOGIES
from lockstep.kube.cache import Change
from lockstep.kube.informer import Informer
from lockstep.runtime.manager import Manager
from lockstep.scheduler.core.state.cluster import Cluster
from lockstep.scheduler.core.state.namespaces import remove_namespace, set_namespace
from lockstep.scheduler.hypernode_source import HyperNodeSource

log = logging.getLogger(__name__)

WATCHED: tuple[Resource[Any], ...] = (
    TOPOLOGIES,
    NODE_POLICIES,
    PRIORITY_CLASSES,
    NAMESPACES,
    QUEUES,
    BUDGETS,
    NODES,
    GANGS,
    PODS,
)


Report = Callable[[Any, Exception], None]
"""What to do about an object that the cluster's state cannot take in."""
Verbs = tuple[Callable[[Any], bool | None], Callable[..., None]]
"""How an object is taken in (false where no decision follows), and how it is forgotten."""


class EventHandlers:
    """The informers that the scheduler decides by."""

    def __init__(self, manager: Manager) -> None:
        self._informers: dict[str, Informer[Any]] = {
            res.plural: manager.informer(res, fresh=res is PODS) for res in WATCHED
        }

    def informer(self, res: Resource[Any]) -> Informer[Any]:
        """Return the informer of one of the watched resources."""
        return self._informers[res.plural]

    def pods_known_since(self, moment: float) -> bool:
        """Return whether the first read of the pods began after *moment* and missed nothing.

        All that the last leader bound is then known already.
        """
        known = self._informers[PODS.plural].known_at
        return known is not None and known >= moment

    async def catch_up(self) -> None:
        """Know all that was written about pods up to now, though their informer may lag behind.

        Raises:
            ApiError: when the server cannot be read.
        """
        await self._informers[PODS.plural].catch_up()

    def attach(
        self, cluster: Cluster, door: HyperNodeSource, wake: Callable[[], None], report: Report
    ) -> Callable[[], None]:
        """Fill *cluster* with what there is and keep it so; return how to stop that.

        Nodes go through the *door* that knows their domains. What cannot be taken in goes to
        *report*, and the others go on.
        """
        verbs = _verbs(cluster, door)
        cancels = [
            self._informers[res.plural].subscribe(_handler(verbs[res.plural], res, wake, report))
            for res in WATCHED
        ]

        def detach() -> None:
            for cancel in cancels:
                cancel()

        return detach


def _handler(
    verbs: Verbs, res: Resource[Any], wake: Callable[[], None], report: Report
) -> Callable[[Change[Any]], None]:
    set_, remove = verbs

    def forget(obj: Any) -> None:
        meta = obj.metadata
        remove(*((meta.namespace, meta.name) if res.namespaced else (meta.name,)))

    def handle(change: Change[Any]) -> None:
        new = change.new
        if new is not None:
            try:
                if set_(new) is False:
                    return
            except Exception as error:
                log.exception(
                    "%s %s/%s cannot be read", res.kind, new.metadata.namespace, new.metadata.name
                )
                report(new, error)
                if res is NODES:  # better no node than one that is not as it was
                    forget(new)
        elif change.old is not None:
            forget(change.old)
        wake()

    return handle


def _verbs(cluster: Cluster, door: HyperNodeSource) -> dict[str, Verbs]:
    """Return by resource how its objects are taken in and forgotten."""
    return {
        PODS.plural: (cluster.set_pod, cluster.remove_pod),
        NODES.plural: (door.set_node, door.remove_node),
        GANGS.plural: (cluster.set_gang, cluster.remove_gang),
        TOPOLOGIES.plural: (cluster.set_topology, cluster.remove_topology),
        PRIORITY_CLASSES.plural: (cluster.set_priority_class, cluster.remove_priority_class),
        NAMESPACES.plural: (partial(set_namespace, cluster), partial(remove_namespace, cluster)),
        NODE_POLICIES.plural: (cluster.set_node_policy, cluster.remove_node_policy),
        QUEUES.plural: (cluster.set_queue, cluster.remove_queue),
        BUDGETS.plural: (cluster.budgets.set, cluster.budgets.remove),
    }
