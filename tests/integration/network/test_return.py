"""A fenced node measures with real agents before it comes back, and stays while a rail is slow."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from contextlib import suppress

import pytest
from tests.support.network_world import World
from tests.support.waiting import eventually, stretched

from lockstep.api import names
from lockstep.api.core import NODES
from lockstep.api.health_policy import HEALTH_POLICIES
from lockstep.api.node_health import NODE_HEALTHS, Finding
from lockstep.api.topology import TOPOLOGIES
from lockstep.health.writing import add
from lockstep.kube.client import Client, Patch
from lockstep.kube.config import ClusterConfig
from lockstep.kube.errors import AlreadyExists, NotFound

pytestmark = [pytest.mark.xdist_group("network"), pytest.mark.soak]

PATIENCE = 120.0
RAILS = [{"name": "rail0", "subnet": "10.60.0.0/16"}, {"name": "rail1", "subnet": "10.61.0.0/16"}]
TIERS = [{"name": "node", "label": "kubernetes.io/hostname"}]
READY = {"type": "Ready", "status": "True", "reason": "r", "message": "m"}
POLICY = {"returnChecks": ["network"], "share": 1.0}


async def prepared(client: Client) -> None:
    """State the rails, the policy, and that the nodes are ready."""
    try:
        await client.create(
            TOPOLOGIES, {"metadata": {"name": "default"}, "spec": {"tiers": TIERS, "rails": RAILS}}
        )
    except AlreadyExists:
        await client.patch(TOPOLOGIES, "default", {"spec": {"rails": RAILS}})
    await client.create(HEALTH_POLICIES, {"metadata": {"name": "all"}, "spec": POLICY})
    for name in ("n1", "n2", "n3"):
        body = {"status": {"conditions": [READY]}}
        await client.patch(NODES, name, body, how=Patch.STRATEGIC, subresource="status")


async def fenced_and_back(client: Client, world: World) -> None:
    bad = Finding(cause="bad", action="isolate_node", confidence=0.9)
    await add(client, "n2", [bad])

    async def tainted() -> bool:
        taints = (await client.get(NODES, "n2")).spec.taints
        return any(one.key == names.UNHEALTHY_TAINT for one in taints)

    async def failed() -> str:
        network = (await client.get(NODE_HEALTHS, "n2")).status.network
        return network.evidence if network is not None and network.state == "failed" else ""

    async def back() -> bool:
        health = await client.get(NODE_HEALTHS, "n2")
        if health.status.network is not None and health.status.network.state == "failed":
            # What an administrator does who has mended the node.
            await client.patch(NODE_HEALTHS, "n2", {"spec": {"findings": []}})
        return not await tainted()

    await eventually(tainted, PATIENCE, "the fence")
    world.fabric.limit("n2", "rail1", "40mbit")
    await client.patch(NODE_HEALTHS, "n2", {"spec": {"findings": []}})
    told = await eventually(failed, PATIENCE, "the slow rail")
    assert told is not None
    assert "rail1: " in told
    assert "rail0: " not in told
    assert await tainted()
    world.fabric.limit("n2", "rail1", "200mbit")
    # Another finding comes and goes, and the node is asked anew.
    await add(client, "n2", [bad])

    async def anew() -> bool:
        return (await client.get(NODE_HEALTHS, "n2")).status.asked is None

    await eventually(anew, PATIENCE, "the finding")
    await client.patch(NODE_HEALTHS, "n2", {"spec": {"findings": []}})
    await eventually(back, PATIENCE, "the return")


async def whole(world: World) -> None:
    async with Client(ClusterConfig.load(world.kubeconfig)) as client:
        try:
            await prepared(client)
            await asyncio.wait_for(fenced_and_back(client, world), stretched(3 * PATIENCE))
        finally:
            for res, name in ((HEALTH_POLICIES, "all"), (TOPOLOGIES, "default")):
                with suppress(NotFound):
                    await client.delete(res, name)


@pytest.mark.timeout(400)
def test_a_node_comes_back_once_its_rails_are_well(world: World) -> None:
    account = world.data / "kubeconfigs" / "controllers.kubeconfig"
    command = [sys.executable, "-m", "lockstep", "controllers", "--kubeconfig", str(account)]
    with (world.data / "controllers.log").open("wb") as log:
        running = subprocess.Popen([*command, "--no-leader-elect"], stdout=log, stderr=log)
    try:
        asyncio.run(whole(world))
    finally:
        world.fabric.limit("n2", "rail1", "200mbit")
        running.terminate()
        running.wait(30)
