"""The controller of node pools under a manager; what it needs is loaded with the first pool."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from lockstep.api.node_pool import NODE_POOLS
from lockstep.runtime.manager import Manager

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from lockstep.pools.metrics import PoolMetrics


def add_pools(manager: Manager, commands: Path | None = None) -> None:
    """Look after node pools while *manager* leads; they may name programs in *commands*."""
    pools = manager.informer(NODE_POOLS)

    kept: list[PoolMetrics] = []

    def metrics(registry: CollectorRegistry) -> PoolMetrics:
        """Return the metrics, the same ones in each term of leadership."""
        from lockstep.pools.metrics import PoolMetrics

        if not kept:
            kept.append(PoolMetrics(registry))
        return kept[0]

    async def look_after() -> None:
        there = asyncio.Event()
        unsubscribe = pools.subscribe(lambda _: there.set())
        try:
            await there.wait()
        finally:
            unsubscribe()
        # The scheduler's core and its arrays take tens of megabytes.
        from lockstep.pools.controller import PoolController
        from lockstep.pools.pricing import Pricing
        from lockstep.pools.providers.registry import Providers

        providers = Providers(manager.client, commands)
        prices = Pricing(manager).node_hour
        await PoolController(manager, providers, prices, metrics(manager.metrics.registry)).run()

    manager.add_task(look_after)
