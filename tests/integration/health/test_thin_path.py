"""A line in a node's kernel log becomes a finding, a fence, and a repaired gang."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.support import parts
from tests.support.apiserver import ApiServer
from tests.support.health_cluster import PATIENCE, controllers, lockstep
from tests.support.waiting import eventually

from lockstep.api import names
from lockstep.api.core import NODES, PODS, Pod
from lockstep.api.health_policy import HEALTH_POLICIES
from lockstep.api.node_health import NODE_HEALTHS
from lockstep.api.training import TRAINING_JOBS
from lockstep.health.agent import KernelLogPart
from lockstep.health.core.holding import holds
from lockstep.kube.client import Client
from lockstep.kube.crds import ensure_crds

XID = "NVRM: Xid (PCI:0000:{:02x}:00): 79, pid=1, GPU has fallen off the bus."


async def submit(client: Client, name: str) -> None:
    container = {"name": "main", "image": "none", "command": ["train"]}
    container["resources"] = {"limits": {"nvidia.com/gpu": 4}}  # type: ignore[assignment]
    template = {"spec": {"terminationGracePeriodSeconds": 1, "containers": [container]}}
    role = {"name": "worker", "replicas": 2, "template": template}
    spec = {"framework": "pytorch", "simulated": True, "roles": [role], "launcher": "None"}
    await client.create(TRAINING_JOBS, {"metadata": {"name": name}, "spec": spec})


async def running(client: Client, without: frozenset[str] = frozenset()) -> list[Pod]:
    """Return the job's two pods once they run, both other ones than those of the uids."""
    found: list[Pod] = []

    async def look() -> bool:
        found[:] = [
            pod
            for pod in (await client.list(PODS, "default")).items
            if pod.status.phase == "Running"
            and pod.metadata.deletion_timestamp is None
            and pod.metadata.uid not in without
        ]
        return len(found) == 2

    await eventually(look, PATIENCE, "two running pods")
    return found


async def test_a_line_in_the_kernel_log_repairs_the_gang(any_server: ApiServer) -> None:
    which = {"scheduler": parts.scheduler, "controllers": controllers}
    async with lockstep(any_server, simulate_nodes=parts.nodes, **which) as client:
        await submit(client, "digits")
        before = await running(client)
        victim = before[0]
        node = victim.spec.node_name
        index = min(int(one.partition("/")[2]) for one in holds(victim) if one.startswith("gpu"))
        log = {names.KERNEL_LOG_ANNOTATION: XID.format(0x10 + index)}
        await client.patch(NODES, node, {"metadata": {"annotations": log}})

        async def fenced() -> bool:
            there = await client.get(NODES, node)
            return there.metadata.annotations.get(names.FENCED_ANNOTATION) == f"gpu/{index}"

        await eventually(fenced, PATIENCE, "the fence")

        async def gone() -> bool:
            pods = (await client.list(PODS, "default")).items
            return all(pod.metadata.uid != victim.metadata.uid for pod in pods)

        await eventually(gone, PATIENCE, "the victim is gone")
        after = await running(client, frozenset({victim.metadata.uid}))
        on_it = [pod for pod in after if pod.spec.node_name == node]
        assert all(f"gpu/{index}" not in holds(pod) for pod in on_it)
        job = await client.get(TRAINING_JOBS, "digits", "default")
        assert job.status.restarts == 0, "the job's own restarts are for its own faults"
        verdict = job.status.diagnosis
        assert verdict is not None
        assert (verdict.class_, verdict.action) == ("hardware", "isolate_node")
        assert verdict.place.nodes == [node]
        health = await client.get(NODE_HEALTHS, node)
        assert [one.device for one in health.spec.findings] == [f"gpu/{index}"]

        over = {names.KERNEL_LOG_ANNOTATION: None, names.FAILED_CHECKS_ANNOTATION: "disk"}
        await client.patch(NODES, node, {"metadata": {"annotations": over}})

        async def failed() -> bool:
            there = await client.get(NODE_HEALTHS, node)
            return [one.cause for one in there.spec.findings] == ["the check disk failed"]

        await eventually(failed, PATIENCE, "the finding of a check that failed")
        assert await fenced(), "a node comes back through its checks alone"
        over = {names.FAILED_CHECKS_ANNOTATION: None}
        await client.patch(NODES, node, {"metadata": {"annotations": over}})
        await client.patch(NODE_HEALTHS, node, {"spec": {"findings": []}})

        async def released() -> bool:
            there = await client.get(NODES, node)
            return names.FENCED_ANNOTATION not in there.metadata.annotations

        await eventually(released, PATIENCE, "the fence is taken away")


async def test_the_agent_reads_a_file_once_across_its_lives(
    server: ApiServer, tmp_path: Path
) -> None:
    log = tmp_path / "kernel.log"
    log.write_text(XID.format(0x17) + "\n")
    async with lockstep(server) as client:
        await client.create(NODES, {"metadata": {"name": "n"}, "spec": {}})
        for count in (1, 2):
            part = KernelLogPart(client, "n", log, lambda: {"0000:17:00": "gpu/3"})
            life = asyncio.create_task(part.run())

            async def told(count: int = count) -> bool:
                healths = (await client.list(NODE_HEALTHS)).items
                return any(one.count == count for h in healths for one in h.spec.findings)

            await eventually(told, PATIENCE, f"counted {count} times")
            life.cancel()
            await asyncio.gather(life, return_exceptions=True)
            with log.open("a") as file:
                file.write(XID.format(0x17) + "\n")


async def sick(client: Client, name: str) -> None:
    finding = {"cause": "bad", "action": "isolate_node", "confidence": 0.9}
    await client.create(NODES, {"metadata": {"name": name}, "spec": {}})
    await client.create(NODE_HEALTHS, {"metadata": {"name": name}, "spec": {"findings": [finding]}})


async def held_and_tainted(client: Client) -> tuple[int, int]:
    healths = (await client.list(NODE_HEALTHS)).items
    held = sum("held" in one.status.message or "dry run" in one.status.message for one in healths)
    return held, sum(one.status.tainted for one in healths)


@pytest.mark.parametrize(
    ("spec", "tainted"), [({}, 2), ({"share": 1.0}, 8), ({"dryRun": True}, 0)], ids=str
)
async def test_no_more_nodes_are_fenced_than_the_policy_lets(
    server: ApiServer, spec: dict[str, Any], tainted: int
) -> None:
    async with server.client() as client:
        await ensure_crds(client)
        if spec:
            await client.create(HEALTH_POLICIES, {"metadata": {"name": "all"}, "spec": spec})
        for number in range(8):
            await sick(client, f"n{number}")
        async with lockstep(server, controllers=controllers):

            async def settled() -> bool:
                return await held_and_tainted(client) == (8 - tainted, tainted)

            await eventually(settled, PATIENCE, f"{tainted} tainted, {8 - tainted} held")
            nodes = (await client.list(NODES)).items
            marked = [
                n for n in nodes if any(t.key == names.UNHEALTHY_TAINT for t in n.spec.taints)
            ]
            assert len(marked) == tainted
