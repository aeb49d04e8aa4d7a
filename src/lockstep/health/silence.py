"""The shell around the rules of silent nodes: follows leases, asks for the quietest, writes taints.

``lockstep up`` has no kubelets and does without; see ``lifecycle`` for its nodes.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

from lockstep.api.core import LEASES, NODES, Lease, Node, Taint
from lockstep.api.names import UNREACHABLE_TAINT
from lockstep.api.wire import to_builtins
from lockstep.health.core.silence import Renewals, is_tainted, judge
from lockstep.health.lifecycle import LEASE_NAMESPACE
from lockstep.kube.cache import Change
from lockstep.kube.client import Client
from lockstep.kube.errors import ApiError, NotFound
from lockstep.kube.events import Recorder
from lockstep.kube.informer import Informer
from lockstep.runtime.manager import Manager

LOOK: Final = 2.0
"""Seconds between two looks."""

log = logging.getLogger(__name__)


def add_silence(manager: Manager) -> None:
    """Find nodes that stop renewing their leases, while *manager* leads."""
    nodes = manager.informer(NODES)
    leases = manager.informer(LEASES, namespace=LEASE_NAMESPACE)
    shell = Silence(manager.client, nodes, manager.recorder())
    leases.subscribe(shell.on_lease)
    nodes.subscribe(shell.on_node)
    # A leader that takes over knows how long each node has been silent.
    manager.add_task(shell.listen, always=True)
    manager.add_task(shell.run)


@dataclass
class Silence:
    """Taints nodes that give no sign of life, and takes the taint away once they do."""

    client: Client
    nodes: Informer[Node]
    recorder: Recorder
    monotonic: Callable[[], float] = time.monotonic
    renewals: Renewals = field(default_factory=Renewals)
    _tainted: set[str] = field(default_factory=set)
    _held: str = ""

    def on_lease(self, change: Change[Lease]) -> None:
        """Take note of a lease that was renewed or deleted."""
        if change.new is not None:
            self.renewals.hear(change.new, self.monotonic())
        else:
            self.renewals.forget(change.object.metadata.name)

    def on_node(self, change: Change[Node]) -> None:
        """Take note of the nodes that bear the taint."""
        if change.new is not None and is_tainted(change.new):
            self._tainted.add(change.new.metadata.name)
        else:
            self._tainted.discard(change.object.metadata.name)

    async def listen(self) -> None:
        """Ask for the lease of the quietest node again and again, until cancelled."""
        await _again(lambda: self.ask(self.renewals.quietest()))

    async def run(self) -> None:
        """Look at all nodes again and again, until cancelled."""
        await _again(self.look)

    async def look(self) -> None:
        """Taint nodes that are lost, and release those that are back.

        Raises:
            ApiError: when the server cannot be used now.
        """
        for name in self.renewals.silent(self.monotonic()):
            await self.ask(name)
        now = self.monotonic()
        silent = self.renewals.silent(now)
        if not silent and not self._tainted:
            self._held = ""
            return
        verdict = judge(self.nodes, silent, self.renewals.renewed(now))
        self._tell(verdict.held, silent)
        for name in verdict.lost:
            await self._taint(name, lost=True)
        for name in verdict.back:
            await self._taint(name, lost=False)

    async def ask(self, name: str) -> None:
        """Read a lease from the server itself: a watch may lag, and an answer shows that it lives.

        Raises:
            ApiError: when the server cannot be used now.
        """
        if not name:
            return
        try:
            lease = await self.client.get(LEASES, name, LEASE_NAMESPACE)
        except NotFound:
            self.renewals.forget(name)
        else:
            self.renewals.hear(lease, self.monotonic())
        self.renewals.answered(self.monotonic())

    def _tell(self, held: str, silent: frozenset[str]) -> None:
        if held and not self._held:
            log.warning("%s", held)
            for node in self.nodes:
                if node.metadata.name in silent:
                    self.recorder.event(node, "Warning", "Held", held)
        self._held = held

    async def _taint(self, name: str, *, lost: bool) -> None:
        try:
            node = await self.client.get(NODES, name)
        except NotFound:
            return
        if is_tainted(node) == lost:
            return
        others = [one for one in node.spec.taints if one.key != UNREACHABLE_TAINT]
        ours = [Taint(key=UNREACHABLE_TAINT, effect="NoSchedule")] if lost else []
        body = {
            "metadata": {"resourceVersion": node.metadata.resource_version},
            "spec": {"taints": to_builtins([*others, *ours])},
        }
        await self.client.patch(NODES, name, body)
        if lost:
            words = f"{name} has stopped renewing its lease; its gangs move"
            self.recorder.event(node, "Warning", "NodeLost", words)
        else:
            self.recorder.event(node, "Normal", "NodeBack", f"{name} renews its lease again")


async def _again(look: Callable[[], Awaitable[None]]) -> None:
    while True:
        try:
            await look()
        except ApiError as error:
            log.info("the leases of nodes cannot be read now: %s", error)
        await asyncio.sleep(LOOK)
