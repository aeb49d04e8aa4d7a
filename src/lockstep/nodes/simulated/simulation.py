"""A fleet of simulated nodes against one API server."""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections.abc import Callable, Sequence

from lockstep.api import names
from lockstep.api.core import NODES, PODS, Node
from lockstep.api.node_health import NODE_HEALTHS
from lockstep.kube.client import Client
from lockstep.kube.informer import Informer
from lockstep.nodes.simulated import kernel_log
from lockstep.nodes.simulated.fleet import address, arrives_in, fleet
from lockstep.nodes.simulated.registration import Registration, is_ready
from lockstep.nodes.simulated.runner import PodRunner
from lockstep.nodes.simulated.spec import NodeGroup
from lockstep.nodes.simulated.timeline import Timeline
from lockstep.runtime.controller import Controller, Key

log = logging.getLogger(__name__)

BOUND_PODS = "spec.nodeName!="


class Simulation:
    """Registers the nodes, keeps them alive, and runs the pods that are bound to them."""

    def __init__(self, client: Client, groups: Sequence[NodeGroup], *, seed: int = 0) -> None:
        self._own = fleet(groups)
        self._hosts = {name: node.address for name, node in self._own.items()}
        """Addresses of the nodes that are simulated, by name."""
        self._numbers = itertools.count(len(self._own))
        self._timeline = Timeline(self._hosts.keys(), seed=seed)
        self._runner = PodRunner(client, self._hosts, self._timeline)
        self._registration = Registration(
            client, self._own, lambda: self._runner.busy, self._hosts.keys()
        )
        self._client = client
        self._pods = Informer(client, PODS, field_selector=BOUND_PODS)
        self._nodes = Informer(client, NODES, label_selector=f"{names.NODE_KIND_LABEL}=simulated")
        # Nodes are there before what fences them, where the controllers come later.
        self._healths = Informer(client, NODE_HEALTHS, optional=True)
        self._controller = Controller("simulated-nodes", self._reconcile_node)
        self._controller.follow(self._nodes).follow(self._healths)

    async def run(self, ready: Callable[[], None]) -> None:
        """Simulate until cancelled; *ready* is called once the nodes are there.

        Raises:
            ApiError: when the server refuses the nodes.
        """
        started = time.monotonic()
        await self._registration.register()
        log.info("%d nodes registered in %.1f s", len(self._own), time.monotonic() - started)
        self._pods.subscribe(self._runner.on_change)
        async with asyncio.TaskGroup() as group:
            parts = (self._pods, self._nodes, self._healths, self._registration, self._runner)
            for part in parts:
                group.create_task(part.run())
            await self._nodes.wait_synced()
            await self._healths.wait_synced()
            group.create_task(self._controller.run())
            await self._pods.wait_synced()
            ready()

    async def _reconcile_node(self, key: Key) -> float | None:
        """Kill or revive a node, as its annotation asks; adopt and forget those of pools.

        Returns the seconds until a node on its way is ready.
        """
        name = key[1]
        node = self._nodes.get(*key)
        if node is None:
            await self._lose(name)
            return None
        if name not in self._hosts:
            if names.POOL_LABEL not in node.metadata.labels:
                return None
            left = arrives_in(node, time.time())
            if left > 0:
                return left
            await self._adopt(node)
            return None
        await kernel_log.play(self._client, node, self._healths.get("", name))
        why = node.metadata.annotations.get(names.FAIL_NODE_ANNOTATION)
        if why is None:
            await self._revive(node)
        else:
            await self._kill(node, why)
        return None

    async def _adopt(self, node: Node) -> None:
        """Simulate a node that was made for a pool while the simulation ran."""
        name = node.metadata.name
        self._hosts[name] = address(next(self._numbers))
        self._timeline.node_revived(name, time.time())
        for pod in self._pods:
            if pod.spec.node_name == name:
                self._timeline.pod_seen(pod, time.time())
        self._runner.wake()
        await self._registration.adopt(name)

    async def _lose(self, name: str) -> None:
        """Stop with a node that was removed; one of the fleet comes back at the next start."""
        self._registration.stop(name)
        if name in self._hosts and name not in self._own:
            await self._registration.forget(name)
            del self._hosts[name]

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
