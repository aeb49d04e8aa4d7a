"""A node that stops renewing its lease is tainted, and released once it renews again."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from tests.support.apiserver import ApiServer
from tests.support.waiting import eventually

from lockstep.api.core import LEASES, NODES
from lockstep.health.core.silence import SILENT_AFTER
from lockstep.health.lifecycle import LEASE_NAMESPACE
from lockstep.health.silence import Silence
from lockstep.kube.client import Client, Patch
from lockstep.kube.events import Recorder
from lockstep.kube.informer import Informer

NAMES = ("a", "b", "c")
STEP = 5.0


@dataclass
class World:
    """Nodes that renew their leases while a clock goes on, which nothing waits for."""

    client: Client
    shell: Silence
    now: float = 0.0

    async def spend(self, seconds: float, *renewing: str) -> None:
        until = self.now + seconds
        while self.now < until:
            self.now += STEP
            for name in renewing:
                body = {"spec": {"renewTime": f"2026-01-01T00:00:00.{self.now:06.0f}Z"}}
                await self.client.patch(LEASES, name, body, LEASE_NAMESPACE)
            for name in NAMES:
                await self.shell.ask(name)
            await self.shell.look()

    async def tainted(self) -> set[str]:
        nodes = (await self.client.list(NODES)).items
        return {n.metadata.name for n in nodes for t in n.spec.taints if "unreachable" in t.key}


async def test_silent_node_is_tainted_until_it_renews(server: ApiServer) -> None:
    async with server.client() as client:
        for name in NAMES:
            await client.create(NODES, {"metadata": {"name": name}, "spec": {}})
            ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
            await client.patch(NODES, name, ready, how=Patch.STRATEGIC, subresource="status")
            lease = {"metadata": {"name": name}, "spec": {"leaseDurationSeconds": 40}}
            await client.create(LEASES, lease, LEASE_NAMESPACE)
        nodes = Informer(client, NODES)
        shell = Silence(client, nodes, Recorder(client, "test"), lambda: world.now)
        nodes.subscribe(shell.on_node)
        world = World(client, shell)
        following = asyncio.create_task(nodes.run())
        try:
            await nodes.wait_synced()
            await world.spend(10, *NAMES)
            await world.spend(SILENT_AFTER, "a", "b")
            assert await world.tainted() == {"c"}

            async def seen() -> set[str]:
                return set(shell._tainted)

            await eventually(seen, 30, "the taint is seen")
            await world.spend(STEP, *NAMES)
            assert await world.tainted() == set()
            await world.spend(2 * SILENT_AFTER, "a")
            assert await world.tainted() == set(), "most nodes at once are not lost"
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
