"""Remediation and node lifecycle, ended at each of their calls: fences and evictions are whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.support.crashing import Arena, Scenario, Stage
from tests.support.lives import in_process

from lockstep.api import names
from lockstep.api.core import NODES, PODS
from lockstep.api.node_health import NODE_HEALTHS
from lockstep.health.lifecycle import add_lifecycle
from lockstep.health.remediation.controller import add_remediation
from lockstep.kube.client import Client, Patch
from lockstep.runtime.manager import Manager

Json = dict[str, Any]
SICK, LOST, WELL = "sick", "lost", "well"


async def health(client: Client, ready: Callable[[str], None]) -> None:
    """Act on findings and on nodes that are not Ready, without an election."""
    manager = Manager(client, name="controllers", leader_elect=False)
    add_remediation(manager)
    add_lifecycle(manager)
    await manager.run(ready)


async def told(stage: Stage) -> None:
    """A device of one node is sick, another node is not Ready."""
    client = stage.client
    for name in (SICK, LOST, WELL):
        await client.create(NODES, {"metadata": {"name": name}, "spec": {}})
        status = "False" if name == LOST else "True"
        ready = {"status": {"conditions": [{"type": "Ready", "status": status}]}}
        await client.patch(NODES, name, ready, how=Patch.STRATEGIC, subresource="status")
    for name in (SICK, LOST):
        node = await client.get(NODES, name)
        await client.create(PODS, _pod(name, node.metadata.uid), "default")
    stage.start()
    finding = {"cause": "bad", "action": "reset_gpu", "device": "gpu/3", "confidence": 0.9}
    await client.create(NODE_HEALTHS, {"metadata": {"name": SICK}, "spec": {"findings": [finding]}})

    async def done() -> bool:
        pods = (await client.list(PODS, "default")).items
        there = await client.get(NODE_HEALTHS, SICK)
        return there.status.fenced == ["gpu/3"] and all(
            pod.metadata.deletion_timestamp is not None for pod in pods
        )

    await stage.until(done, "the fence, and both pods ending")
    await stage.quiet()


def _pod(node: str, uid: str) -> Json:
    owner = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid, "controller": True}
    told: Json = {"name": f"on-{node}", "annotations": {names.GPUS_ANNOTATION: "3"}}
    spec = {
        "nodeName": node,
        "terminationGracePeriodSeconds": 600,
        "tolerations": [{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0}],
        "containers": [{"name": "main", "image": "none"}],
    }
    return {"metadata": {**told, "ownerReferences": [owner]}, "spec": spec}


async def outcome(stage: Stage) -> object:
    """Return what became of nodes, pods and the fence."""
    client = stage.client
    nodes = {
        one.metadata.name: (
            one.metadata.annotations.get(names.FENCED_ANNOTATION),
            sorted((t.key, t.effect) for t in one.spec.taints),
            sorted((c.type, c.status) for c in one.status.conditions),
        )
        for one in (await client.list(NODES)).items
    }
    pods = {
        one.metadata.name: sorted(
            (c.type, c.status, c.reason)
            for c in one.status.conditions
            if c.type == "DisruptionTarget"
        )
        for one in (await client.list(PODS, "default")).items
    }
    status = (await client.get(NODE_HEALTHS, SICK)).status
    return nodes, pods, status.fenced, status.message


def story() -> Scenario:
    return Scenario(in_process(health), told, outcome)


async def test_fences_are_whole_wherever_the_controllers_end(arena: Arena) -> None:
    await arena.endures(story())


@pytest.mark.real_sample()
async def test_fences_are_whole_in_any_weather(arena: Arena) -> None:
    await arena.weathers(story(), range(arena.seeds + 4))
