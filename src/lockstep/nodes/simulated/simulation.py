"""A fleet of simulated nodes against one API server."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence

from lockstep.api import names
from lockstep.api.core import NODES, PODS, Node
from lockstep.kube.client import Client
from lockstep.kube.controller import Controller, Key
from lockstep.kube.informer import Informer
from lockstep.nodes.simulated.fleet import fleet
from lockstep.nodes.simulated.registration import Registration, is_ready
from lockstep.nodes.simulated.runner import PodRunner
from lockstep.nodes.simulated.spec import NodeGroup
from lockstep.nodes.simulated.timeline import Timeline

log = logging.getLogger(__name__)

BOUND_PODS = "spec.nodeName!="


class Simulation:
    """Registers the nodes, keeps them alive, and runs the pods that are bound to them."""

    def __init__(self, client: Client, groups: Sequence[NodeGroup], *, seed: int = 0) -> None:
        nodes = fleet(groups)
        self._names = nodes.keys()
        self._timeline = Timeline(self._names, seed=seed)
        self._runner = PodRunner(client, nodes, self._timeline)
        self._registration = Registration(client, nodes, lambda: self._runner.busy)
        self._pods = Informer(client, PODS, field_selector=BOUND_PODS)
        self._nodes = Informer(client, NODES, label_selector=f"{names.NODE_KIND_LABEL}=simulated")
        self._controller = Controller("simulated-nodes", self._reconcile_node)
        self._controller.follow(self._nodes)

    async def run(self, ready: Callable[[], None]) -> None:
        """Simulate until cancelled; *ready* is called once the nodes are there.

        Raises:
            ApiError: when the server refuses the nodes.
        """
        started = time.monotonic()
        await self._registration.register()
        log.info("%d nodes registered in %.1f s", len(self._names), time.monotonic() - started)
        self._pods.subscribe(self._runner.on_change)
        async with asyncio.TaskGroup() as group:
            for part in (self._pods, self._nodes, self._registration, self._runner):
                group.create_task(part.run())
            await self._nodes.wait_synced()
            group.create_task(self._controller.run())
            await self._pods.wait_synced()
            ready()

    async def _reconcile_node(self, key: Key) -> None:
        """Kill or revive a node, as its annotation asks."""
        name = key[1]
        if name not in self._names:
            return
        node = self._nodes.get(*key)
        if node is None:
            # Somebody removed it: it comes back when the simulation is started again.
            self._registration.stop(name)
            return
        why = node.metadata.annotations.get(names.FAIL_NODE_ANNOTATION)
        if why is None:
            await self._revive(node)
        else:
            await self._kill(node, why)

    async def _kill(self, node: Node, why: str) -> None:
        name = node.metadata.name
        self._registration.stop(name)
        self._timeline.node_died(name)
        if is_ready(node):
            message = "the simulated node was made to fail"
            await self._registration.tell(
                name, ready=False, why=f"{message}: {why}" if why else message
            )

    async def _revive(self, node: Node) -> None:
        name = node.metadata.name
        if not is_ready(node):
            await self._registration.renew(name)
            await self._registration.tell(name, ready=True)
        self._registration.resume(name)
        if self._timeline.is_dead(name):
            self._timeline.node_revived(name, time.time())
            self._runner.wake()
