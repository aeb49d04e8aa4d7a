"""Gives the pods of a gang their addresses once all of it is placed, and takes them back.

A gang is planned for where its pods ask for ``lockstep.dev/nics`` and rails of the Topology state a
``pool``. What is planned lies on the nodes, so a controller that ends between any two calls goes on
from there.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass

from lockstep.api.core import NODES, PODS, Node, Pod
from lockstep.api.names import GANG_LABEL, NETWORK_ANNOTATION, NICS
from lockstep.api.topology import TOPOLOGIES, Topology
from lockstep.devices.core.holders import asked
from lockstep.devices.network import planning
from lockstep.kube.client import Client
from lockstep.kube.errors import Conflict, NotFound
from lockstep.kube.events import Recorder
from lockstep.kube.informer import Informer
from lockstep.runtime.controller import Controller, Key
from lockstep.runtime.manager import Manager

log = logging.getLogger(__name__)

CONFLICT_AGAIN = 0.1
REFUSED_AGAIN = 30.0
"""Seconds after which a plan that was not possible is tried again."""


def add_addresses(manager: Manager) -> None:
    """Plan the addresses of gangs while *manager* leads."""
    pods = manager.informer(PODS)
    shell = Planner(
        manager.client,
        pods,
        manager.informer(NODES),
        manager.informer(TOPOLOGIES),
        manager.recorder("network"),
    )
    # One worker: two plans at once would only meet each other's marks.
    manager.add(Controller("addresses", shell.reconcile, workers=1).follow(pods, keys))


def keys(pod: Pod) -> Iterable[Key]:
    """Return the gang of a pod that asks for NICs; one of no gang is its own."""
    if not any(asked(one.resources, NICS) for one in pod.spec.containers):
        return ()
    meta = pod.metadata
    return ((meta.namespace, meta.labels.get(GANG_LABEL, "") or f"pod/{meta.name}"),)


@dataclass
class Planner:
    """Holds gangs against what is planned on their nodes."""

    client: Client
    pods: Informer[Pod]
    nodes: Informer[Node]
    topologies: Informer[Topology]
    recorder: Recorder

    async def reconcile(self, key: Key) -> float | None:
        """Plan for the gang at *key* when all its pods have nodes; forget those that are gone.

        Raises:
            ApiError: when the server cannot be used now; the caller tries again later.
        """
        members = [pod for pod in self.pods if key in keys(pod)]
        living = [pod for pod in members if pod.status.phase not in planning.OVER]
        try:
            await self._forget()
            if not self._wanted(living):
                return None
            await planning.plan(self.client, living, apply=True, pooled=True)
        except Conflict:
            return CONFLICT_AGAIN
        except NotFound as error:
            log.debug("addresses of %s/%s: %s", *key, error)
        except ValueError as error:
            text = f"no addresses on the rails: {error}"
            self.recorder.event(living[0] if living else members[0], "Warning", "NoAddresses", text)
            return REFUSED_AGAIN
        return None

    def _wanted(self, living: list[Pod]) -> bool:
        topology = self.topologies.get("", "default")
        if topology is None or not any(rail.pool for rail in topology.spec.rails):
            return False
        if not living or not all(pod.spec.node_name for pod in living):
            return False
        return not all(self._has(pod) for pod in living)

    def _has(self, pod: Pod) -> bool:
        node = self.nodes.get("", str(pod.spec.node_name))
        return node is not None and str(pod.metadata.uid) in planning.node_plan(node).pods

    async def _forget(self) -> None:
        """Take what is planned for pods that are gone off the nodes."""
        planned = [one for one in self.nodes if NETWORK_ANNOTATION in one.metadata.annotations]
        if not planned:
            return
        over = planning.OVER
        alive = {str(pod.metadata.uid) for pod in self.pods if pod.status.phase not in over}
        for node in planned:
            if any(uid not in alive for uid in planning.node_plan(node).pods):
                await planning.forget(self.client, node.metadata.name)
