"""A fabric manager that runs again ends its finding, also one from before a restart."""

from __future__ import annotations

import asyncio

from tests.support.apiserver import ApiServer
from tests.support.health_cluster import PATIENCE, lockstep
from tests.support.waiting import eventually

from lockstep.api.core import NODES
from lockstep.api.node_health import NODE_HEALTHS
from lockstep.health.core.signals import NO_MANAGER
from lockstep.health.signals import SignalsPart


async def test_a_registered_card_deletes_its_own_finding_alone(server: ApiServer) -> None:
    found = [
        {"cause": NO_MANAGER, "device": "gpu/0"},
        {"cause": NO_MANAGER, "device": "gpu/1"},
        {"cause": "bad", "device": "gpu/0"},
    ]
    readings = {"gpu/0": {"fabric_state": 3.0}, "gpu/1": {"fabric_state": 2.0}}
    async with lockstep(server) as client:
        await client.create(NODES, {"metadata": {"name": "n"}, "spec": {}})
        await client.create(NODE_HEALTHS, {"metadata": {"name": "n"}, "spec": {"findings": found}})
        part = asyncio.create_task(SignalsPart(client, "n", lambda: readings).run())

        async def left() -> list[tuple[str, str]] | None:
            there = await client.get(NODE_HEALTHS, "n")
            kept = [(one.cause, one.device) for one in there.spec.findings]
            return kept if len(kept) < len(found) else None

        try:
            kept = await eventually(left, PATIENCE, "the end of the finding")
        finally:
            part.cancel()
            await asyncio.gather(part, return_exceptions=True)
    assert kept == [(NO_MANAGER, "gpu/1"), ("bad", "gpu/0")]
