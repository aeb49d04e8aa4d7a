"""The shell around the plan: reads a node and its pods, writes what the findings ask for."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from lockstep.api import names, timestamp
from lockstep.api.core import NODES, PODS, Node
from lockstep.api.node_health import NODE_HEALTHS, NodeHealth, NodeHealthStatus
from lockstep.api.wire import to_builtins
from lockstep.health.remediation import plan
from lockstep.kube.client import Client, Patch
from lockstep.kube.controller import Controller, Key
from lockstep.kube.errors import NotFound
from lockstep.kube.events import Recorder
from lockstep.kube.informer import Informer
from lockstep.kube.manager import Manager

Json = dict[str, Any]

CONDITION: Final = "LockstepUnhealthy"
AGAIN: Final = 1.0
"""Seconds until a node that had pods to end is looked at again: more may have been on their way."""
LOOK: Final = 15.0
"""Seconds between two looks at a node with anything fenced."""


def add_remediation(manager: Manager) -> None:
    """Run remediation while *manager* leads."""
    healths = manager.informer(NODE_HEALTHS)
    shell = Remediation(manager.client, healths, manager.recorder())
    controller = Controller("node-health", shell.reconcile, workers=8)
    controller.follow(healths)
    manager.add(controller)


@dataclass
class Remediation:
    """Brings each node to what its findings ask for; all that it knows is in the objects.

    First the devices are fenced, so that nothing new comes; then the pods are told why, and end.
    """

    client: Client
    healths: Informer[NodeHealth]
    recorder: Recorder
    clock: Callable[[], float] = time.time

    async def reconcile(self, key: Key) -> float | None:
        """Bring the node of the NodeHealth at *key* to what that asks for.

        Raises:
            ApiError: when the server cannot be used now; the caller tries again later.
        """
        health = self.healths.get(*key)
        if health is None:
            return None
        what = plan.wanted(health.spec.findings)
        if not what.anything and not (health.status.fenced or health.status.tainted):
            return None
        try:
            node = await self.client.get(NODES, health.metadata.name)
        except NotFound:
            return None
        await self._fence(node, what)
        ended = await self._end(node, what) if what.anything else 0
        await self._tell(health, what)
        if not what.anything:
            return None
        return AGAIN if ended else LOOK

    async def _fence(self, node: Node, what: plan.Wanted) -> None:
        """Write annotation, taint and condition of the node, where they are others."""
        name, meta = node.metadata.name, node.metadata
        change: Json = {}
        if meta.annotations.get(names.FENCED_ANNOTATION) != plan.annotation(what):
            fenced = {names.FENCED_ANNOTATION: plan.annotation(what)}
            change["metadata"] = {"annotations": fenced}
        taints = plan.taints(node, what)
        if taints != node.spec.taints:
            change["spec"] = {"taints": to_builtins(taints)}
        if change:
            change.setdefault("metadata", {})["resourceVersion"] = meta.resource_version
            await self.client.patch(NODES, name, change)
        status = "True" if what.anything else "False"
        words = plan.message(what)
        there = next((c for c in node.status.conditions if c.type == CONDITION), None)
        if there is None or there.status != status or there.message != words:
            now = timestamp.show(self.clock())
            same = there is not None and there.status == status and there.last_transition_time
            condition = {
                "type": CONDITION,
                "status": status,
                "reason": "Findings" if what.anything else "NoFindings",
                "message": words,
                "lastHeartbeatTime": now,
                "lastTransitionTime": same or now,
            }
            await self.client.patch(
                NODES,
                name,
                {"status": {"conditions": [condition]}},
                how=Patch.STRATEGIC,
                subresource="status",
            )

    async def _end(self, node: Node, what: plan.Wanted) -> int:
        """End the pods that have to go; return how many those were."""
        selector = f"spec.nodeName={node.metadata.name}"
        pods = await self.client.list(PODS, field_selector=selector)
        leaving = plan.leaving(pods.items, what)
        for one in leaving:
            await self._end_one(one)
        return len(leaving)

    async def _end_one(self, one: plan.Leaving) -> None:
        meta = one.pod.metadata
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": one.reason,
            "message": one.message,
            "lastTransitionTime": timestamp.show(self.clock()),
        }
        body = {"metadata": {"uid": meta.uid}, "status": {"conditions": [condition]}}
        try:
            await self.client.patch(
                PODS, meta.name, body, meta.namespace, how=Patch.STRATEGIC, subresource="status"
            )
            await self.client.delete(PODS, meta.name, meta.namespace, uid=meta.uid)
        except NotFound:
            return

    async def _tell(self, health: NodeHealth, what: plan.Wanted) -> None:
        words = plan.message(what)
        status = NodeHealthStatus(
            fenced=list(what.fenced), tainted=bool(what.tainted), message=words
        )
        if status == health.status:
            return
        if what.anything:
            self.recorder.event(health, "Warning", "Fenced", words)
        else:
            self.recorder.event(health, "Normal", "Released", "nothing is fenced any more")
        body = {"fenced": status.fenced, "tainted": status.tainted, "message": status.message}
        await self.client.patch(
            NODE_HEALTHS, health.metadata.name, {"status": body}, subresource="status"
        )
