"""The shell around the rules of nodes' lives: follows nodes, leases and pods, writes what follows.

Where kube-controller-manager runs, this does not: ``lockstep up`` alone turns it on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from lockstep.api import timestamp
from lockstep.api.core import LEASES, NODES, PODS, Lease, Node, Pod, Taint
from lockstep.api.wire import Json, to_builtins
from lockstep.health.core import lifecycle as rules
from lockstep.kube.client import Client, Patch
from lockstep.kube.errors import NotFound
from lockstep.kube.events import Recorder
from lockstep.kube.informer import Informer
from lockstep.runtime.controller import Controller, Key
from lockstep.runtime.manager import Manager
from lockstep.runtime.status import patch_status, put_condition

LOOK: Final = 5.0
"""Seconds between two looks at a node that is not Ready."""
LEASE_NAMESPACE: Final = "kube-node-lease"
_BY_NODE: Final = "lockstep.dev/by-node"


def add_lifecycle(manager: Manager, grace: float = rules.GRACE) -> None:
    """Take care of nodes that give no sign of life for *grace* seconds, while *manager* leads."""
    nodes = manager.informer(NODES)
    leases = manager.informer(LEASES, namespace=LEASE_NAMESPACE)
    pods = manager.informer(PODS, indices={_BY_NODE: _node_of})
    shell = Lifecycle(manager.client, nodes, leases, pods, manager.recorder(), grace)
    controller = Controller("node-lifecycle", shell.reconcile, workers=8)
    controller.follow(nodes)
    manager.add(controller)


def _node_of(pod: Pod) -> Iterable[str]:
    return [pod.spec.node_name] if pod.spec.node_name else []


@dataclass
class Lifecycle:
    """Brings conditions, taints and pods of each node to what its silence asks for."""

    client: Client
    nodes: Informer[Node]
    leases: Informer[Lease]
    pods: Informer[Pod]
    recorder: Recorder
    grace: float = rules.GRACE
    clock: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic
    signs: rules.Signs = field(default_factory=rules.Signs)
    _tainted: dict[str, dict[Taint, float]] = field(default_factory=dict)

    async def reconcile(self, key: Key) -> float | None:
        """Look at the node at *key*; return when to look again.

        Raises:
            ApiError: when the server cannot be used now; the caller tries again later.
        """
        _, name = key
        node = self.nodes.get("", name)
        if node is None:
            self.signs.forget(name)
            self._tainted.pop(name, None)
            return None
        lease = self.leases.get(LEASE_NAMESPACE, name)
        renewed = lease.spec.renew_time or "" if lease is not None else ""
        seconds = lease.spec.lease_duration_seconds if lease is not None else 0
        quiet = self.signs.quiet(name, rules.mark(node, renewed), self.monotonic())
        limit = rules.grace(node, seconds, self.grace)
        if quiet >= limit and await self._lose(node, quiet):
            return LOOK
        await self._taint(node)
        await self._unready(node)
        again = await self._evict(node)
        if quiet < limit and rules.readiness(node) == "True":
            return limit - quiet
        return min(LOOK, again or LOOK)

    async def _lose(self, node: Node, quiet: float) -> bool:
        """Write that a node is silent; say whether anything had to be written."""
        changes = rules.lost_conditions(node, timestamp.show(self.clock()))
        if not changes:
            return False
        name, status = node.metadata.name, {"conditions": changes}
        how = Patch.STRATEGIC
        await patch_status(self.client, NODES, node.metadata, status, seen=True, how=how)
        words = f"{name} has given no sign of life for {quiet:.0f} s"
        self.recorder.event(node, "Warning", "NodeNotReady", words)
        return True

    async def _taint(self, node: Node) -> None:
        wanted = rules.taints(node, timestamp.show(self.clock()), evicts=self._any_ready())
        if wanted == node.spec.taints:
            return
        body = {
            "metadata": {"resourceVersion": node.metadata.resource_version},
            "spec": {"taints": to_builtins(wanted)},
        }
        await self.client.patch(NODES, node.metadata.name, body)

    def _any_ready(self) -> bool:
        return any(rules.readiness(one) == "True" for one in self.nodes)

    async def _unready(self, node: Node) -> None:
        """Say of the pods of a node that is not Ready that they are not ready either."""
        if rules.readiness(node) == "True":
            return
        for pod in self.pods.by_index(_BY_NODE, node.metadata.name):
            if any(c.type == "Ready" and c.status == "True" for c in pod.status.conditions):
                condition = {
                    "type": "Ready",
                    "status": "False",
                    "lastTransitionTime": timestamp.show(self.clock()),
                }
                await self._write(pod, condition)

    async def _evict(self, node: Node) -> float | None:
        name, now = node.metadata.name, self.clock()
        known = self._tainted.get(name, {})
        bad = [one for one in node.spec.taints if one.effect == "NoExecute"]
        self._tainted[name] = {one: known.get(one, now) for one in bad}
        if not bad:
            self._tainted.pop(name)
            return None
        pods = self.pods.by_index(_BY_NODE, name)
        found = rules.evictions(node, pods, self._tainted[name], now)
        for pod in found.now:
            await self._delete(pod)
        return found.again

    async def _delete(self, pod: Pod) -> None:
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": rules.EVICTED,
            "message": "Taint manager: deleting due to NoExecute taint",
            "lastTransitionTime": timestamp.show(self.clock()),
        }
        meta = pod.metadata
        if await self._write(pod, condition):
            try:
                await self.client.delete(PODS, meta.name, meta.namespace, uid=meta.uid)
            except NotFound:
                return
            self.recorder.event(
                pod, "Normal", "TaintManagerEviction", "deleted: its node is not Ready"
            )

    async def _write(self, pod: Pod, condition: Json) -> bool:
        """Write a condition of *pod*; say whether it is still there."""
        meta = pod.metadata
        try:
            await put_condition(self.client, PODS, meta, condition)
        except NotFound:
            return False
        return True
