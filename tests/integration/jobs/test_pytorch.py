"""Real torch processes find each other with what the controller gives them."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.support.process_node import needs_mounts, read_log
from tests.support.training import Cluster
from tests.support.waiting import eventually

pytestmark = [
    pytest.mark.torch,
    pytest.mark.real_sample("test_one_process_a_pod_needs_no_launcher"),
]

SCRIPT = """
import os, sys, time, torch, torch.distributed as dist
dist.init_process_group("gloo")
for step in range(int(sys.argv[1])):
    total = torch.ones(1)
    dist.all_reduce(total)
    # In one write: the processes of a pod share its log.
    os.write(1, f"rank {dist.get_rank()} step {step} of {int(total)}\\n".encode())
    time.sleep(0.1)
dist.destroy_process_group()
"""


@pytest.fixture
def script(tmp_path: Path) -> str:
    """A program that counts its ranks at each step."""
    if find_spec("torch") is None:
        pytest.skip("needs torch (the train extra)")
    needs_mounts()
    path = tmp_path / "count.py"
    path.write_text(SCRIPT)
    return str(path)


def worker(*command: str, **more: object) -> dict[str, object]:
    container = {"name": "main", "image": "none", "command": list(command)}
    spec = {"terminationGracePeriodSeconds": 2, "containers": [container]}
    return {"name": "worker", "template": {"spec": spec}, **more}


async def test_one_process_a_pod_needs_no_launcher(cluster: Cluster, script: str) -> None:
    role = worker("python", script, "2", replicas=2)
    await cluster.submit("bare", role, framework="pytorch")
    await cluster.reaches("bare", "Succeeded", 200)
    assert "rank 1 step 1 of 2" in read_log(cluster.node, "bare-worker-1")


async def test_torchrun_starts_several_processes_in_each_pod(cluster: Cluster, script: str) -> None:
    role = worker("torchrun", script, "2", replicas=2, processesPerNode=2)
    await cluster.submit("run", role, framework="pytorch")
    await cluster.reaches("run", "Succeeded", 200)
    printed = read_log(cluster.node, "run-worker-1")
    assert {f"rank {rank} step 1 of 4" for rank in (2, 3)} <= set(printed.splitlines())


@pytest.mark.soak
async def test_an_elastic_job_goes_on_after_a_pod_was_killed(cluster: Cluster, script: str) -> None:
    role = worker("torchrun", script, "200", replicas=3, min=2, max=4)
    await cluster.submit("elastic", role, framework="pytorch", recovery={"maxRestarts": 5})
    await cluster.running("elastic", 3)

    def steps() -> int:
        return read_log(cluster.node, "elastic-worker-0").count("rank 0 step 5 of 3")

    await eventually(steps, 60, "a world of three")
    survivor = (await cluster.pods("elastic"))["worker-0"].metadata.uid
    await cluster.kill("elastic", "worker-2")
    await eventually(lambda: steps() == 2, 60, "a world of three again")
    assert (await cluster.pods("elastic"))["worker-0"].metadata.uid == survivor
    status = await cluster.reaches("elastic", "Succeeded", 200)
    assert (status.restarts, status.attempt) == (1, 0)
