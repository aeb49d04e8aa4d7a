"""The agent's part that measures the network when a NetworkCheck names its node.

Nothing orders the nodes about: all derive the same rounds from the check, each goes through them in
their order, and a pair meets when both have come to it. So a node is in one measurement at a time.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final

from msgspec.structs import replace

from lockstep.api.network import NETWORK_CHECKS, Check, Endpoint, Measured, NetworkCheck, NodeAnswer
from lockstep.api.topology import Rail
from lockstep.api.wire import to_builtins
from lockstep.devices.network import probe
from lockstep.devices.network.core.model import Nic
from lockstep.devices.network.core.rails import address_on, assigned
from lockstep.devices.network.core.rounds import lanes, partners, sampled
from lockstep.devices.network.inventory import default_routes, nics
from lockstep.devices.network.tree import Tree
from lockstep.kube.client import Client
from lockstep.kube.errors import ApiError, NotFound
from lockstep.kube.informer import Informer
from lockstep.runtime.status import patch_status

log = logging.getLogger(__name__)

RETRY: Final = 1.0
MOST_CHECKS: Final = 64


class NetworkPart:
    """Takes part in the checks that name *node*, one after another."""

    def __init__(self, client: Client, node: str) -> None:
        self._client, self._node = client, node
        self._checks: Informer[NetworkCheck] = Informer(client, NETWORK_CHECKS, optional=True)
        self._changed = asyncio.Event()
        self._checks.subscribe(lambda _: self._changed.set())
        self._left: set[str] = set()

    async def run(self) -> None:
        """Take part until cancelled."""
        following = asyncio.ensure_future(self._checks.run())
        try:
            while True:
                self._changed.clear()
                check = self._next()
                if check is None:
                    await self._changed.wait()
                    continue
                try:
                    await self._take_part(check)
                except ApiError as error:
                    if isinstance(error, NotFound):
                        self._left.add(check.metadata.uid)
                    log.warning("the network check %s: %s", check.metadata.name, error)
                    await asyncio.sleep(RETRY)
        finally:
            following.cancel()

    def _next(self) -> NetworkCheck | None:
        """Return the oldest check that still waits for this node."""
        open_ = [
            one
            for one in self._checks
            if self._node in one.spec.nodes
            and one.metadata.uid not in self._left
            and one.status.nodes.get(self._node, NodeAnswer()).state != "done"
        ]
        return min(open_, key=lambda one: one.metadata.creation_timestamp or "", default=None)

    async def _take_part(self, check: NetworkCheck) -> None:
        terms = probe.Terms(check.spec.token, check.spec.seconds, check.spec.patience)
        found, problem = await asyncio.to_thread(_rails_here, check.spec.rails)
        listeners, problems = _listeners(terms, found)
        told = "; ".join(one for one in (problem, *problems) if one)
        try:
            endpoints = [one.endpoint for one in listeners.values()]
            await self._answer(check, NodeAnswer(state="ready", endpoints=endpoints, problem=told))
            measured = await self._measure(check, terms, listeners)
            looked = await asyncio.to_thread(_looked, self._node, check.spec.rails)
            done = NodeAnswer(
                state="done",
                endpoints=endpoints,
                measured=measured,
                checks=looked,
                problem=told,
            )
            await self._answer(check, done)
            self._left.add(check.metadata.uid)
        finally:
            for one in listeners.values():
                one.close()

    async def _answer(self, check: NetworkCheck, answer: NodeAnswer) -> None:
        # Each node writes under its own key, so that no two writes meet.
        whole: Any = {"measured": [], "problem": "", **to_builtins(answer)}
        status = {"nodes": {self._node: whole}}
        await patch_status(self._client, NETWORK_CHECKS, check.metadata, status)

    async def _measure(
        self, check: NetworkCheck, terms: probe.Terms, listeners: dict[str, probe.Listener]
    ) -> list[Measured]:
        nodes = check.spec.nodes
        own = nodes.index(self._node)
        all_rounds = sampled(len(nodes), check.spec.peers, {})
        measured: list[Measured] = []
        silent: set[str] = set()
        names = {rail.name for rail in check.spec.rails} | set(listeners)
        for one, other in lanes(names, check.spec.across):
            for peer in partners(nodes, self._node, all_rounds):
                first = own < nodes.index(peer)
                listener = listeners.get(one if first else other)
                if listener is None:
                    continue
                theirs = other if first else one
                far = None
                if peer not in silent:
                    far = await self._endpoint(check, peer, theirs)
                if far is None:
                    if self._state(check, peer) == "":
                        silent.add(peer)
                    if first and one == other:
                        told = f"{peer} has no NIC on {theirs}"
                        measured.append(Measured(peer=peer, rail=one, problem=told))
                elif first:
                    ends = (listener.endpoint, self._node, peer, far)
                    found = await asyncio.to_thread(probe.measure, terms, *ends)
                    measured.append(found if one == other else replace(found, to_rail=other))
                else:
                    # The peer writes down what both measured.
                    await asyncio.to_thread(listener.measure, peer)
        return measured

    def _state(self, check: NetworkCheck, peer: str) -> str:
        now = self._checks.get("", check.metadata.name)
        return now.status.nodes.get(peer, NodeAnswer()).state if now is not None else ""

    async def _endpoint(self, check: NetworkCheck, peer: str, rail: str) -> Endpoint | None:
        """Return where a peer answers, once it has said so; None where it does not."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + check.spec.patience
        while True:
            self._changed.clear()
            now = self._checks.get("", check.metadata.name)
            if now is None or now.metadata.uid != check.metadata.uid:
                raise NotFound(404, "NotFound", "the check was deleted")
            answer = now.status.nodes.get(peer, NodeAnswer())
            if answer.state:
                return next((one for one in answer.endpoints if one.rail == rail), None)
            left = deadline - loop.time()
            if left <= 0:
                return None
            try:
                await asyncio.wait_for(self._changed.wait(), left)
            except TimeoutError:
                return None


def _looked(node: str, rails: list[Rail]) -> list[Check]:
    """Return what the checklist says of this machine, the worst first."""
    from lockstep.devices.network.checklist import about, checks

    try:
        found = checks([about(Tree(name=node), rails)])
    except ValueError:
        return []
    order = ("fail", "warn", "ok", "unknown")
    return sorted(found, key=lambda one: order.index(one.state))[:MOST_CHECKS]


def _rails_here(rails: list[Rail]) -> tuple[list[tuple[Nic, str]], str]:
    """Return this machine's NICs that are on a rail, with their addresses there."""
    tree = Tree()
    try:
        found = assigned(nics(tree), rails, default_routes(tree))
    except ValueError as error:
        return [], str(error)
    by_name = {rail.name: rail for rail in rails}
    placed = [
        (nic, address)
        for nic in found
        if nic.rail and nic.netdev and (address := address_on(nic, by_name.get(nic.rail)))
    ]
    return placed, "" if placed else "no NIC with an address on a rail"


def _listeners(
    terms: probe.Terms, found: list[tuple[Nic, str]]
) -> tuple[dict[str, probe.Listener], list[str]]:
    listeners: dict[str, probe.Listener] = {}
    problems = []
    for nic, address in found:
        if nic.rail in listeners:
            problems.append(f"{nic.netdev} is on {nic.rail} too; the first one counts")
            continue
        try:
            listeners[nic.rail] = probe.Listener(terms, address, nic.netdev, nic.rail)
        except OSError as error:
            problems.append(f"{nic.netdev} {address}: {error.strerror}")
    return listeners, problems
