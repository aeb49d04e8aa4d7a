"""Names that resolve inside pods, and torch ranks that find each other by them."""

from __future__ import annotations

import importlib.util
import socket
from pathlib import Path

import pytest
from tests.support.process_node import ProcessNode, needs_mounts, phase, pod, read_log

from lockstep.api.core import SERVICES
from lockstep.kube.client import Client
from lockstep.nodes.process.spec import POD_RUNS

RANK = """
import os, torch, torch.distributed as dist
dist.init_process_group("gloo", timeout=__import__("datetime").timedelta(seconds=60))
x = torch.ones(1) * (dist.get_rank() + 1)
dist.all_reduce(x)
print("sum", int(x), "of", dist.get_world_size(), "on", os.environ["HOSTNAME"], flush=True)
dist.destroy_process_group()
"""


async def _service(client: Client, name: str) -> None:
    spec = {"clusterIP": "None", "selector": {"app": name}, "publishNotReadyAddresses": True}
    await client.create(SERVICES, {"metadata": {"name": name}, "spec": spec}, "default")


def _member(name: str, service: str, script: str | list[str], **more: object) -> dict[str, object]:
    return pod(
        name,
        script,
        metadata={"labels": {"app": service}},
        hostname=name,
        subdomain=service,
        **more,
    )


async def test_members_of_a_headless_service_find_each_other(
    client: Client, node: ProcessNode
) -> None:
    needs_mounts()
    await _service(client, "ring")
    look = (
        "hostname; until getent hosts ring-1.ring; do sleep 0.05; done;"
        " getent hosts ring-1.ring.default.svc.cluster.local ring-0 | cut -d' ' -f1"
    )
    await client.create(POD_RUNS, _member("ring-0", "ring", look))
    await client.create(POD_RUNS, _member("ring-1", "ring", "sleep 1000"))
    first = await phase(client, "ring-0", "Succeeded")
    second = await phase(client, "ring-1", "Running")
    lines = read_log(node, "ring-0").splitlines()
    assert lines[0] == "ring-0"
    assert lines[1].split()[0] == second.status.pod_ip
    assert lines[2:] == [second.status.pod_ip, first.status.pod_ip]
    await client.delete(POD_RUNS, "ring-1", "default", grace_seconds=0)


@pytest.mark.torch
async def test_two_torch_ranks_meet_by_host_name(client: Client, node: ProcessNode) -> None:
    if importlib.util.find_spec("torch") is None:
        pytest.skip("needs the train extra (torch)")
    needs_mounts()
    await _service(client, "torch")
    with socket.create_server(("", 0)) as free:
        port = free.getsockname()[1]
    for rank in range(2):
        env = {
            "MASTER_ADDR": "torch-0.torch",
            "MASTER_PORT": str(port),
            "RANK": str(rank),
            "WORLD_SIZE": "2",
        }
        container = {"env": [{"name": key, "value": value} for key, value in env.items()]}
        script = ["python", "-c", RANK]
        await client.create(
            POD_RUNS, _member(f"torch-{rank}", "torch", script, container=container)
        )
    for rank in range(2):
        await phase(client, f"torch-{rank}", "Succeeded", "Failed", deadline=90)
        assert f"sum 3 of 2 on torch-{rank}" in read_log(node, f"torch-{rank}")


async def test_services_of_a_namespace_that_come_later_are_seen(
    client: Client, node: ProcessNode
) -> None:
    needs_mounts()
    await client.create(POD_RUNS, _member("late-0", "slow", "sleep 1000"))
    await client.create(
        POD_RUNS,
        pod("asker", "until getent hosts late-0.slow; do sleep 0.05; done"),
    )
    await phase(client, "asker", "Running")
    await _service(client, "slow")
    await phase(client, "asker", "Succeeded")
    await client.delete(POD_RUNS, "late-0", "default", grace_seconds=0)


async def test_pods_of_two_nodes_find_each_other(
    client: Client, node: ProcessNode, tmp_path: Path
) -> None:
    needs_mounts()
    other = ProcessNode(node.server, tmp_path / "other", name="there").start()
    try:
        await _service(client, "both")
        for mine, peer, place in (("both-0", "both-1", "here"), ("both-1", "both-0", "there")):
            script = f"until getent hosts {peer}.both; do sleep 0.05; done; sleep 0.5"
            await client.create(POD_RUNS, _member(mine, "both", script, nodeName=place))
        for name in ("both-0", "both-1"):
            await phase(client, name, "Succeeded")
    finally:
        other.stop()
