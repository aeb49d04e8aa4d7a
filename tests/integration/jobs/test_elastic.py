"""A job with real torch ranks changes its size and misses no sample."""

from __future__ import annotations

from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from tests.support.process_node import needs_mounts, read_log
from tests.support.training import Cluster
from tests.support.waiting import eventually

pytestmark = [pytest.mark.torch, pytest.mark.timeout(900), pytest.mark.real_sample()]

Json = dict[str, Any]

PATIENCE = 280.0
SAMPLES, BATCH, STEPS = 48, 12, 12
SCRIPT = f"""
import os, time, torch, torch.distributed as dist
from lockstep.train import Batches, Checkpointer

dist.init_process_group("gloo")
rank, out = dist.get_rank(), os.environ["OUT"]
torch.manual_seed(0)
model = torch.nn.Linear(1, 1)
batches = Batches({SAMPLES}, batch={BATCH})
ckpt = Checkpointer(model=model, batches=batches)
reader = iter(batches)
start = ckpt.restore()
print(f"rank {{rank}} starts at {{start}}", flush=True)
for step in range(start, {STEPS}):
    if step % ({SAMPLES} // {BATCH}) == 0:
        reader = iter(batches)
    taken = next(reader)
    dist.all_reduce(torch.ones(1))
    ckpt.step(step + 1)
    with open(f"{{out}}/taken-{{rank}}", "a") as file:
        file.write("".join(f"{{step}} {{one}}\\n" for one in taken))
    # Until the test lets it go on, or another size ends it.
    with open(f"{{out}}/go") as go:
        while step + 1 >= int(go.read() or 0):
            time.sleep(0.02)
            go.seek(0)
dist.destroy_process_group()
"""


@pytest.fixture(autouse=True)
def torch_there() -> None:
    if find_spec("torch") is None:
        pytest.skip("needs torch (the train extra)")
    needs_mounts()


def worker(directory: Path, **size: int) -> Json:
    """Return a role that runs the script, with its files in *directory*."""
    script = directory / "elastic.py"
    script.write_text(SCRIPT)
    env = [{"name": "OUT", "value": str(directory)}]
    container = {"name": "main", "image": "none", "command": ["python", str(script)], "env": env}
    spec = {"terminationGracePeriodSeconds": 2, "containers": [container]}
    return {"name": "worker", "template": {"spec": spec}, **size}


def taken(directory: Path) -> list[tuple[int, int]]:
    """Return which sample was taken in which step, of all ranks."""
    lines = [
        line.split() for path in directory.glob("taken-*") for line in path.read_text().splitlines()
    ]
    return [(int(step), int(one)) for step, one in lines]


async def all_wait(cluster: Cluster, name: str, directory: Path, steps: int) -> None:
    """Return once all ranks wait after so many steps, and are known to be equal."""

    async def known() -> bool:
        found = await cluster.job(name)
        return found is not None and found.status.replicated

    done = steps * BATCH
    await eventually(lambda: len(taken(directory)) == done, PATIENCE, f"{steps} steps are done")
    await eventually(known, PATIENCE, "equal ranks are known")


async def reaches_generation(cluster: Cluster, name: str, number: int) -> None:
    async def there() -> bool:
        found = await cluster.job(name)
        return found is not None and found.status.generation >= number

    await eventually(there, PATIENCE, f"generation {number}")


def each_once_an_epoch(directory: Path) -> None:
    for epoch in range(STEPS * BATCH // SAMPLES):
        once = Counter(one for step, one in taken(directory) if step // 4 == epoch)
        assert once == dict.fromkeys(range(SAMPLES), 1)


@pytest.mark.soak  # three times the start of torch in up to three pods: minutes on a busy machine
async def test_two_three_one_ranks_take_each_sample_once_an_epoch(
    cluster: Cluster, tmp_path: Path
) -> None:
    (tmp_path / "go").write_text("5")
    role = worker(tmp_path, min=1, max=4)
    await cluster.submit("elastic", {**role, "replicas": 2}, framework="pytorch")
    for generation, size, begun, end in ((2, 3, 5, 9), (3, 1, 9, STEPS + 1)):
        await all_wait(cluster, "elastic", tmp_path, begun)
        await cluster.edit("elastic", roles=[{**role, "replicas": size}])
        await reaches_generation(cluster, "elastic", generation)
        (tmp_path / "go").write_text(str(end))
    status = await cluster.reaches("elastic", "Succeeded", PATIENCE)
    assert (status.restarts, status.attempt) == (0, 0)
    each_once_an_epoch(tmp_path)
    assert {"productive", "restoring"} <= set(status.goodput.seconds)


async def test_a_spare_continues_at_a_lost_pods_exact_step(
    cluster: Cluster, tmp_path: Path
) -> None:
    (tmp_path / "go").write_text("5")
    role = worker(tmp_path, replicas=2)
    await cluster.submit("spared", role, framework="pytorch", recovery={"spares": 1})
    await all_wait(cluster, "spared", tmp_path, 5)
    await cluster.running("spared", 3)
    before = (await cluster.pods("spared"))["worker-2"].metadata.uid
    await cluster.kill("spared", "worker-1")
    await reaches_generation(cluster, "spared", 2)
    (tmp_path / "go").write_text(str(STEPS + 1))
    status = await cluster.reaches("spared", "Succeeded", PATIENCE)
    assert (status.restarts, status.attempt) == (1, 0)
    assert status.seats is not None
    assert status.seats.pods == ["spared-worker-0", "spared-worker-2"]
    assert (await cluster.pods("spared"))["worker-2"].metadata.uid == before
    assert "rank 1 starts at 5" in read_log(cluster.node, "spared-worker-2").splitlines()
    each_once_an_epoch(tmp_path)
