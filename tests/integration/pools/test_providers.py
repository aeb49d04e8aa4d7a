"""Providers outside: their nodes come and go, and where one fails the next pool is tried."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.support.apiserver import ApiServer
from tests.support.pool_parts import end, lockstep, submit
from tests.support.stand_in_clouds import Autoscaler, HookCloud, Karpenter, install, running
from tests.support.waiting import eventually

from lockstep.api.core import NODES
from lockstep.api.gang import GANGS, Gang
from lockstep.api.names import POOL_LABEL
from lockstep.api.node_pool import NODE_POOLS, NodePool
from lockstep.kube.client import Client

PATIENCE = 60.0
LABELS = {"node-group": "h100"}
TEMPLATE = {"capacity": {"cpu": 96, "memory": "1Ti", "nvidia.com/gpu": 8}, "labels": LABELS}
CLASS = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "gpus"}
KARPENTER = {"karpenter": {"nodeClassRef": CLASS}}
AUTOSCALER = {"provisioningRequest": {"namespace": "default"}}


def pool(name: str, provider: dict[str, Any], **more: Any) -> dict[str, Any]:
    spec = {"max": 8, "idle": "1s", "arrival": "30s", "template": TEMPLATE, "provider": provider}
    return {"metadata": {"name": name}, "spec": {**spec, **more}}


@contextlib.asynccontextmanager
async def cloud(kind: str, client: Client, *, stock: bool) -> AsyncIterator[dict[str, Any]]:
    """Run a stand-in; yield the provider that a pool names to use it."""
    if kind == "hook":
        behind = HookCloud(client)
        behind.stock = stock
        async with behind.served() as url:
            yield {"hook": {"url": url}}
    elif kind == "karpenter":
        async with running(Karpenter(client, stock=stock).look):
            yield KARPENTER
    else:
        async with running(Autoscaler(client, LABELS, stock=stock).look):
            yield AUTOSCALER


async def nodes_of(client: Client, *pools: str) -> list[int]:
    found = [n.metadata.labels.get(POOL_LABEL) for n in (await client.list(NODES)).items]
    return [found.count(name) for name in pools]


async def placed(client: Client) -> Gang:
    """Return the one gang once all of it has nodes."""

    async def look() -> Gang | None:
        gangs = (await client.list(GANGS, "default")).items
        return gangs[0] if len(gangs) == 1 and gangs[0].status.phase == "Placed" else None

    return await eventually(look, PATIENCE, "the gang is placed")


@pytest.mark.parametrize("kind", ["hook", "karpenter", "autoscaler"])
async def test_nodes_come_for_a_gang_and_go_after_it(any_server: ApiServer, kind: str) -> None:
    async with lockstep(any_server) as client:
        await install(client)
        async with cloud(kind, client, stock=True) as provider:
            await client.create(NODE_POOLS, pool("p", provider))
            await submit(client, "big", 2)
            await placed(client)

            async def grown() -> bool:
                return await nodes_of(client, "p") == [2]

            await eventually(grown, PATIENCE, "both nodes are the pool's")
            await end(client, "big")

            async def empty() -> bool:
                return len((await client.list(NODES)).items) == 0

            await eventually(empty, PATIENCE, "no node is left")


@pytest.mark.parametrize("kind", ["hook", "karpenter", "autoscaler"])
async def test_the_next_pool_is_tried_where_stock_is_out(any_server: ApiServer, kind: str) -> None:
    async with lockstep(any_server) as client:
        await install(client)
        other = HookCloud(client)
        async with cloud(kind, client, stock=False) as provider, other.served() as url:
            cheap = pool("cheap", provider, nodeHour=1.0)
            await client.create(NODE_POOLS, cheap)
            await client.create(NODE_POOLS, pool("dear", {"hook": {"url": url}}, nodeHour=9.0))
            await submit(client, "big", 2)
            await placed(client)
            assert await nodes_of(client, "cheap", "dear") == [0, 2]
            status = (await client.get(NODE_POOLS, "cheap")).status
            assert (status.reason, status.requests) == ("OutOfStock", [])
            assert status.retry_at


async def test_a_hook_that_lies_is_found_out(server: ApiServer) -> None:
    async with lockstep(server) as client:
        liar = HookCloud(client)
        liar.lies = True
        async with liar.served() as url:
            await client.create(NODE_POOLS, pool("p", {"hook": {"url": url}}))
            await submit(client, "big", 2)

            async def told() -> NodePool | None:
                found = await client.get(NODE_POOLS, "p")
                return found if found.status.reason else None

            found = await eventually(told, PATIENCE, "the pool says what is wrong")
            assert found.status.reason == "ProviderFailed"
            assert "not listed" in found.status.message
