"""The shell around the plan: reads a node and its pods, writes what the findings ask for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from lockstep.api import names, timestamp
from lockstep.api.core import NODES, PODS, Node, Pod
from lockstep.api.health_policy import HEALTH_POLICIES, HealthPolicy, HealthPolicySpec
from lockstep.api.node_health import (
    NODE_HEALTHS,
    CheckResult,
    NodeHealth,
    NodeHealthStatus,
    Reset,
    slow_network,
)
from lockstep.api.wire import Json, to_builtins
from lockstep.health.core.policy import Acted, away, chosen, objection
from lockstep.health.remediation import plan
from lockstep.health.remediation.pairs import Pairs
from lockstep.kube.client import Client
from lockstep.kube.errors import NotFound
from lockstep.kube.events import Recorder
from lockstep.kube.informer import Informer
from lockstep.runtime.controller import Controller, Key
from lockstep.runtime.manager import Manager
from lockstep.runtime.status import patch_status, put_condition

CONDITION: Final = "LockstepUnhealthy"
AGAIN: Final = 1.0
"""Seconds until a node that had pods to end is looked at again: more may have been on their way."""
LOOK: Final = 15.0
"""Seconds between two looks at a node with anything fenced."""


def add_remediation(manager: Manager) -> None:
    """Run remediation while *manager* leads."""
    healths = manager.informer(NODE_HEALTHS)
    policies, nodes = manager.informer(HEALTH_POLICIES), manager.informer(NODES)
    pairs = Pairs(manager.client, nodes)
    shell = Remediation(manager.client, healths, policies, nodes, manager.recorder(), pairs)
    controller = Controller("node-health", shell.reconcile, workers=8)
    controller.follow(healths)
    controller.follow(policies, lambda _: [("", one.metadata.name) for one in healths])
    controller.follow(nodes, shell.orphaned)
    manager.add(controller)


@dataclass(frozen=True, slots=True)
class _Next:
    """What is to follow a fence: checks before what *stays* comes back, and resets."""

    stays: plan.Wanted
    policy: HealthPolicySpec
    network: CheckResult | None
    reset: Reset | None


@dataclass
class Remediation:
    """Brings each node to what its findings ask for; all that it knows is in the objects.

    First the devices are fenced, so that nothing new comes; then the pods are told why, and end.
    """

    client: Client
    healths: Informer[NodeHealth]
    policies: Informer[HealthPolicy]
    nodes: Informer[Node]
    recorder: Recorder
    pairs: Pairs
    clock: Callable[[], float] = time.time
    _deciding: asyncio.Lock = field(default_factory=asyncio.Lock)
    _acted: dict[str, float] = field(default_factory=dict)
    """Nodes that are being acted upon, which the cache of their NodeHealths may not show yet."""

    async def reconcile(self, key: Key) -> float | None:
        """Bring the node of the NodeHealth at *key* to what that asks for.

        Raises:
            ApiError: when the server cannot be used now; the caller tries again later.
        """
        health, known = self.healths.get(*key), self.nodes.get("", key[1])
        if health is None:
            if known is not None and plan.marked(known):
                await self._release(known.metadata.name)
            return None
        await self._take_last(health, known)
        policy = chosen(self.policies, known.metadata.labels if known is not None else {})
        what = plan.wanted(health.spec.findings, policy)
        stays = plan.returning(health, what, policy)
        if not what.anything and not (health.status.fenced or health.status.tainted):
            return None
        try:
            node = await self.client.get(NODES, health.metadata.name)
        except NotFound:
            return None
        if what.anything and (why := await self._objection(health, node, policy, what)):
            await self._hold(health, f"{why}; {plan.message(what)}")
            return LOOK
        whole = plan.both(what, stays)
        await self._fence(node, whole)
        pods = await self._pods(node) if whole.anything else []
        ended = await self._end(pods, what, policy) if what.anything else 0
        now = timestamp.show(self.clock())
        reset = plan.resets(health, what, policy, pods, now) if policy.reset else None
        network = health.status.network
        if stays.anything and "network" in policy.return_checks and network is None:
            network = await self.pairs.result(health)
        await self._tell(health, whole, _Next(stays, policy, network, reset))
        if not whole.anything:
            self._acted.pop(node.metadata.name, None)
            return None
        return AGAIN if ended or stays.anything else LOOK

    def orphaned(self, node: Node) -> list[Key]:
        """Return the key of a node that is still fenced though its NodeHealth was deleted."""
        gone = self.healths.get("", node.metadata.name) is None and plan.marked(node)
        return [("", node.metadata.name)] if gone else []

    async def _release(self, name: str) -> None:
        """Take away what was done for a NodeHealth that was deleted."""
        try:
            node = await self.client.get(NODES, name)
        except NotFound:
            return
        try:
            await self.client.get(NODE_HEALTHS, name)
        except NotFound:
            self._acted.pop(name, None)
            await self._take_last(NodeHealth(metadata=node.metadata), node)
            await self._fence(await self.client.get(NODES, name), plan.Wanted())

    async def _objection(
        self, health: NodeHealth, node: Node, policy: HealthPolicySpec, what: plan.Wanted
    ) -> str:
        """Return why nothing is done now; where it may be, count the node from now on."""
        if policy.dry_run:
            return "not done, for this is a dry run (spec.dryRun)"
        status = health.status
        done = set(what.fenced) <= set(status.fenced) and bool(what.tainted) <= status.tainted
        if done and (status.fenced or status.tainted):
            return ""
        known = ((h.metadata.name, one) for h in self.healths for one in h.spec.findings)
        gone = away(known, self.clock()) if policy.storage_away else []
        if gone and len(gone) >= policy.storage_away:
            some = ", ".join(gone[:4]) + (", ..." if len(gone) > 4 else "")
            return f"held: storage is away on {len(gone)} nodes: {some} (spec.storageAway)"
        async with self._deciding:
            now, name = self.clock(), node.metadata.name
            domain = node.metadata.labels.get(policy.domain, "")
            peers = [n for n in self.nodes if n.metadata.labels.get(policy.domain, "") == domain]
            acted = [self._seen(peer) for peer in peers]
            why = objection(policy, name, len(peers), acted, now)
            if why:
                return f"held: {why}"
            self._acted[name] = now
        return ""

    def _seen(self, peer: Node) -> Acted:
        """Return whether a node is fenced, by its annotation, taint or record, and since when."""
        name = peer.metadata.name
        health, at = self.healths.get("", name), self._acted.get(name)
        status = health.status if health is not None else NodeHealthStatus()
        held = plan.held(peer) or status.tainted or bool(status.fenced) or at is not None
        noted = timestamp.read(status.acted_at) if status.acted_at else None
        return Acted(name, held, at if at is not None else noted)

    async def _take_last(self, health: NodeHealth, known: Node | None) -> None:
        """Let the scheduler take a node last while its network is known to be slow."""
        slow = bool(slow_network(health))
        if known is None or plan.slow_taints(known, slow) == known.spec.taints:
            return
        try:
            node = await self.client.get(NODES, known.metadata.name)
        except NotFound:
            return
        taints = plan.slow_taints(node, slow)
        if taints != node.spec.taints:
            version = {"resourceVersion": node.metadata.resource_version}
            body = {"metadata": version, "spec": {"taints": to_builtins(taints)}}
            await self.client.patch(NODES, node.metadata.name, body)

    async def _hold(self, health: NodeHealth, words: str) -> None:
        """Say why nothing is done, once."""
        if health.status.message == words:
            return
        self.recorder.event(health, "Warning", "Held", words)
        await patch_status(self.client, NODE_HEALTHS, health.metadata, {"message": words})

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
            await put_condition(self.client, NODES, meta, condition)

    async def _pods(self, node: Node) -> list[Pod]:
        selector = f"spec.nodeName={node.metadata.name}"
        return list((await self.client.list(PODS, field_selector=selector)).items)

    async def _end(self, pods: list[Pod], what: plan.Wanted, policy: HealthPolicySpec) -> int:
        """End the pods that have to go; return how many those were."""
        leaving = plan.leaving(pods, what, policy.queues, policy.jobs)
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
        try:
            await put_condition(self.client, PODS, meta, condition)
            await self.client.delete(PODS, meta.name, meta.namespace, uid=meta.uid)
        except NotFound:
            return

    async def _tell(self, health: NodeHealth, what: plan.Wanted, after: _Next) -> None:
        words = plan.message(what)
        asked = plan.asked(health, after.stays, after.policy, timestamp.show(self.clock()))
        at = self._acted.get(health.metadata.name) if what.anything else None
        status = NodeHealthStatus(
            fenced=list(what.fenced),
            tainted=bool(what.tainted),
            acted_at=timestamp.show(at) if at is not None else health.status.acted_at,
            asked=asked,
            checks=list(after.policy.return_checks) if asked else [],
            network=after.network if asked == health.status.asked else None,
            reset=after.reset,
            message=words,
        )
        if status == health.status:
            return
        if what.anything and words != health.status.message:
            self.recorder.event(health, "Warning", "Fenced", words)
        elif not what.anything:
            self.recorder.event(health, "Normal", "Released", "nothing is fenced any more")
        body: Json = {
            "fenced": status.fenced,
            "tainted": status.tainted,
            "message": status.message,
            "actedAt": status.acted_at,
            "asked": status.asked,
            "checks": status.checks,
            "network": to_builtins(status.network) if status.network is not None else None,
            "reset": to_builtins(status.reset) if status.reset is not None else None,
        }
        await patch_status(self.client, NODE_HEALTHS, health.metadata, body)
