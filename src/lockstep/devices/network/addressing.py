"""The agent's part that gives its node the addresses that are planned for the pods there."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from lockstep.api.core import NODES, Node, Pod
from lockstep.api.names import NETWORK_ANNOTATION
from lockstep.api.network import NodePlan
from lockstep.devices.network import netlink
from lockstep.devices.network.core.rails import assigned
from lockstep.devices.network.core.wanted import Wanted, wanted
from lockstep.devices.network.inventory import default_routes, nics
from lockstep.devices.network.tree import Tree
from lockstep.kube.client import Client
from lockstep.kube.informer import Informer

log = logging.getLogger(__name__)

AGAIN: Final = 30.0
"""Seconds after which the kernel is held against the plan though nothing changed."""
ENDED: Final = ("Succeeded", "Failed")


class AddressPart:
    """Brings the kernel to what is planned for the pods of *node*, and back when they end."""

    def __init__(self, client: Client, node: str, pods: Callable[[], Informer[Pod]]) -> None:
        self._node, self._pods = node, pods
        self._nodes: Informer[Node] = Informer(
            client, NODES, field_selector=f"metadata.name={node}"
        )
        self._due = asyncio.Event()
        self._told: list[str] = []

    async def run(self) -> None:
        """Act until cancelled; where nothing was ever planned, nothing is touched."""
        following = asyncio.ensure_future(self._nodes.run())
        ends = []
        try:
            pods = self._pods()
            await pods.wait_synced()
            await self._nodes.wait_synced()
            ends = [pods.subscribe(self._changed), self._nodes.subscribe(self._changed)]
            used = await asyncio.to_thread(netlink.before_file().exists)
            while True:
                self._due.clear()
                plan = self._plan()
                used = used or bool(plan.pods)
                if used:
                    await asyncio.to_thread(self._bring, plan, list(pods))
                try:
                    await asyncio.wait_for(self._due.wait(), AGAIN)
                except TimeoutError:
                    continue
        finally:
            following.cancel()
            for end in ends:
                end()

    def _changed(self, _: object) -> None:
        self._due.set()

    def _plan(self) -> NodePlan:
        node = self._nodes.get("", self._node)
        text = node.metadata.annotations.get(NETWORK_ANNOTATION, "") if node is not None else ""
        try:
            return msgspec.json.decode(text, type=NodePlan) if text else NodePlan()
        except msgspec.MsgspecError as error:
            self._tell([f"{NETWORK_ANNOTATION}: {error}"])
            return NodePlan()

    def _bring(self, plan: NodePlan, pods: list[Pod]) -> None:
        found = desired(plan, pods)
        self._tell(found.problems)
        try:
            for words in netlink.bring(found, netlink.before_file()):
                log.info("addresses of node %s: %s", self._node, words)
        except Exception as error:
            log.warning("addresses of node %s: %s; again", self._node, error)

    def _tell(self, problems: list[str]) -> None:
        if problems != self._told:
            for one in problems:
                log.warning("addresses of node %s: %s", self._node, one)
            self._told = problems


def desired(plan: NodePlan, pods: Iterable[Pod]) -> Wanted:
    """Return what is planned for those of *pods* that have not ended, on this machine's NICs."""
    there = {pod.metadata.uid for pod in pods if pod.status.phase not in ENDED}
    planned = [one for uid, those in plan.pods.items() if uid in there for one in those]
    tree = Tree()
    try:
        placed = assigned(nics(tree), plan.rails, default_routes(tree))
    except ValueError as error:
        return Wanted(problems=[str(error)])
    return wanted(planned, {nic.rail: nic.netdev for nic in placed if nic.rail and nic.netdev})
