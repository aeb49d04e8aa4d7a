"""Ranks are killed at random again and again, and the weights are those of an undisturbed run."""

from __future__ import annotations

import contextlib
import os
import random
import signal
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.support.process_node import needs_mounts, read_log
from tests.support.training import Cluster
from tests.support.waiting import eventually

pytestmark = [pytest.mark.torch, pytest.mark.soak, pytest.mark.timeout(1800)]

KILLS, APART = 20, 50
PATIENCE = 400.0
SCRIPT = """
import hashlib, os, torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from lockstep.train import Batches, Checkpointer

torch.manual_seed(0)
torch.set_num_threads(1)
dist.init_process_group("gloo")
rank, out, steps = dist.get_rank(), os.environ["OUT"], int(os.environ["STEPS"])
model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.Dropout(0.3), torch.nn.Linear(32, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
samples = torch.randn(512, 8, generator=torch.Generator().manual_seed(1))
batches = Batches(512, batch=32)
ckpt = Checkpointer(model=model, optimizer=optimizer, batches=batches)
start = ckpt.restore()
# Each rank has random numbers of its own, and they go on too.
if not start:
    torch.manual_seed(100 + rank)
parallel = DistributedDataParallel(model)
reader = iter(batches)
for step in range(start, steps):
    taken = next(reader, None)
    if taken is None:
        reader = iter(batches)
        taken = next(reader)
    optimizer.zero_grad()
    (parallel(samples[taken]) - 1).square().mean().backward()
    optimizer.step()
    ckpt.step(step + 1)
    with open(f"{out}/at-{rank}", "w") as file:
        file.write(f"{step + 1} {os.getpid()}")
state = b"".join(p.detach().numpy().tobytes() for p in model.parameters())
print("weights", hashlib.sha256(state).hexdigest(), flush=True)
dist.destroy_process_group()
"""


@pytest.fixture(autouse=True)
def torch_there() -> None:
    if find_spec("torch") is None:
        pytest.skip("needs torch (the train extra)")
    needs_mounts()


async def run(cluster: Cluster, name: str, directory: Path, kills: int) -> str:
    """Run the job to its end while its ranks are killed; return what it says of its weights."""
    directory.mkdir()
    script = directory / "train.py"
    script.write_text(SCRIPT)
    steps = APART * (KILLS + 1)
    env = [{"name": "OUT", "value": str(directory)}, {"name": "STEPS", "value": str(steps)}]
    container = {"name": "main", "image": "none", "command": ["python", str(script)], "env": env}
    role = {"name": "worker", "replicas": 2, "template": {"spec": {"containers": [container]}}}
    recovery = {"maxRestarts": 2 * KILLS}
    await cluster.submit(name, role, framework="pytorch", recovery=recovery)
    chance = random.Random(7)  # noqa: S311  which rank is killed when
    for kill in range(kills):
        victim = chance.randrange(2)

        def reached(least: int = kill * APART + chance.randrange(APART), at: int = victim) -> int:
            with contextlib.suppress(OSError, ValueError):
                step, pid = (directory / f"at-{at}").read_text().split()
                return int(pid) if int(step) > least and Path(f"/proc/{pid}").exists() else 0
            return 0

        os.kill(await eventually(reached, PATIENCE, f"kill {kill + 1}"), signal.SIGKILL)
    status = await cluster.reaches(name, "Succeeded", PATIENCE)
    assert status.restarts >= kills - 1
    lines = read_log(cluster.node, f"{name}-worker-0").splitlines()
    return next(line for line in lines if line.startswith("weights"))


async def test_twenty_kills_leave_the_weights_as_they_are(cluster: Cluster, tmp_path: Path) -> None:
    undisturbed = await run(cluster, "calm", tmp_path / "calm", 0)
    assert await run(cluster, "killed", tmp_path / "killed", KILLS) == undisturbed
