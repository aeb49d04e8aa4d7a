"""A node mends itself: fenced, reset by its hook, checked by its agent, and back."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.support.apiserver import ApiServer
from tests.support.health_cluster import PATIENCE, controllers, lockstep
from tests.support.waiting import eventually

from lockstep.api import names
from lockstep.api.core import NODES
from lockstep.api.health_policy import HEALTH_POLICIES
from lockstep.api.node_health import NODE_HEALTHS, NodeHealth
from lockstep.health.returning import ReturnPart
from lockstep.kube.client import Client
from lockstep.kube.config import ClusterConfig

HOOK = """#!/bin/sh
echo "$LOCKSTEP_NODE $1" >> {said}
echo "the reset says this"
exit {code}
"""


@pytest.mark.parametrize("code", [0, 3], ids=["the hook succeeds", "the hook fails"])
async def test_a_device_is_reset_and_checked_before_it_comes_back(
    server: ApiServer, tmp_path: Path, code: int
) -> None:
    hook, said = tmp_path / "hook", tmp_path / "said"
    hook.write_text(HOOK.format(said=said, code=code))
    hook.chmod(0o755)
    async with lockstep(server, controllers=controllers) as client:
        policy = {"metadata": {"name": "all"}, "spec": {"reset": ["reset_gpu"]}}
        await client.create(HEALTH_POLICIES, policy)
        await client.create(NODES, {"metadata": {"name": "n"}, "spec": {}})
        finding = {
            "cause": "bad",
            "action": "reset_gpu",
            "device": "gpu/3",
            "confidence": 0.9,
            "last": "2026-01-01T00:00:00Z",
        }
        spec = {"findings": [finding]}
        account = server.data / "kubeconfigs" / "agent.kubeconfig"
        async with Client(ClusterConfig.load(account)) as own:
            part = asyncio.create_task(ReturnPart(own, "n", hook).run())
            try:
                await client.create(NODE_HEALTHS, {"metadata": {"name": "n"}, "spec": spec})

                async def done() -> NodeHealth | None:
                    there = await client.get(NODE_HEALTHS, "n")
                    reset, checked = there.spec.reset, there.spec.checked
                    if code:
                        return there if reset is not None else None
                    back = checked is not None and not there.status.fenced
                    return there if back and there.status.acted_at else None

                health = await eventually(done, PATIENCE, "the end of the reset")
            finally:
                part.cancel()
                await asyncio.gather(part, return_exceptions=True)
        assert health is not None
        assert said.read_text() == "n gpu/3\n", "once"
        node = await client.get(NODES, "n")
        if code:
            assert node.metadata.annotations[names.FENCED_ANNOTATION] == "gpu/3"
            assert health.spec.reset is not None
            assert "ended with 3: the reset says this" in health.spec.reset.failed[0]
            return
        assert names.FENCED_ANNOTATION not in node.metadata.annotations
        assert health.spec.findings == []
        checked = health.spec.checked
        assert checked is not None
        states = {one.name: one.state for one in checked.results if not one.device}
        assert states == {"matmul": "ok", "memory": "ok", "disk": "ok"}


async def test_a_deleted_nodehealth_takes_its_fences_along(server: ApiServer) -> None:
    account = server.data / "kubeconfigs" / "agent.kubeconfig"
    told: list[list[str]] = []
    async with (
        lockstep(server, controllers=controllers) as client,
        Client(ClusterConfig.load(account)) as own,
    ):
        await client.create(NODES, {"metadata": {"name": "n"}, "spec": {}})
        finding = {"cause": "bad", "action": "isolate_node", "confidence": 0.9}
        findings = [{**finding, "device": "gpu/3"}, finding, {"cause": "network check: nic n/1"}]
        part = ReturnPart(own, "n", fenced=lambda devices: told.append(list(devices)))
        running = asyncio.create_task(part.run())

        async def fences() -> tuple[str | None, int]:
            node = await client.get(NODES, "n")
            return node.metadata.annotations.get(names.FENCED_ANNOTATION), len(node.spec.taints)

        async def fenced() -> bool:
            return await fences() == ("gpu/3", 2) and ["gpu/3"] in told

        async def free() -> bool:
            return await fences() == (None, 0) and told[-1] == []

        try:
            body = {"metadata": {"name": "n"}, "spec": {"findings": findings}}
            await client.create(NODE_HEALTHS, body)
            await eventually(fenced, PATIENCE, "the fence")
            await client.delete(NODE_HEALTHS, "n")
            await eventually(free, PATIENCE, "no fence and no taint")
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


async def test_a_node_with_a_slow_network_is_last_until_well(
    server: ApiServer,
) -> None:
    async with lockstep(server, controllers=controllers) as client:
        await client.create(NODES, {"metadata": {"name": "n"}, "spec": {}})
        finding = {"cause": "network check: nic n/rail1", "evidence": "40 % of the rail's rate"}
        spec = {"findings": [finding]}
        await client.create(NODE_HEALTHS, {"metadata": {"name": "n"}, "spec": spec})

        async def effects(wanted: list[str]) -> bool:
            taints = (await client.get(NODES, "n")).spec.taints
            return [one.effect for one in taints if one.key == names.SLOW_TAINT] == wanted

        await eventually(lambda: effects(["PreferNoSchedule"]), PATIENCE, "the taint")
        await client.patch(NODE_HEALTHS, "n", {"spec": {"findings": []}})
        await eventually(lambda: effects([]), PATIENCE, "no taint")
