"""A pod is lost whose ranks hold parts of their own, and the job ends with the same bits."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.support.process_node import needs_mounts, read_log
from tests.support.survivors import PATIENCE, worker
from tests.support.training import Cluster
from tests.support.waiting import eventually

pytestmark = [pytest.mark.torch, pytest.mark.timeout(900)]

STEPS, STOP = 60, 40
SCRIPT = """
import hashlib, os, random, time, torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from lockstep.train import Checkpointer

class Order:
    # Another order of samples in each rank, and another number of them a step.
    def __init__(self, rank):
        self.generator = torch.Generator().manual_seed(rank)
        self.read, self.rank = 0, rank
    def batch(self):
        count = 4 + self.rank + random.randrange(4)
        self.read += count
        return torch.randint(512, (count,), generator=self.generator)
    def state_dict(self):
        return {"order": self.generator.get_state(), "read": self.read}
    def load_state_dict(self, state):
        self.generator.set_state(state["order"])
        self.read = state["read"]

torch.set_num_threads(1)
dist.init_process_group("gloo")
rank, out = dist.get_rank(), os.environ["OUT"]
torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Linear(8, 32), torch.nn.BatchNorm1d(32), torch.nn.Dropout(0.3), torch.nn.Linear(32, 1)
)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
samples = torch.randn(512, 8, generator=torch.Generator().manual_seed(1))
order = Order(rank)
ckpt = Checkpointer(model=model, optimizer=optimizer, order=order)
start = ckpt.restore()
if not start:
    torch.manual_seed(100 + rank)
    random.seed(100 + rank)
print(f"rank {rank} starts at {start}", flush=True)
parallel = DistributedDataParallel(model, broadcast_buffers=False)
for step in range(start, int(os.environ["STEPS"])):
    optimizer.zero_grad()
    (parallel(samples[order.batch()]) - 1).square().mean().backward()
    optimizer.step()
    ckpt.step(step + 1)
    while step + 1 == int(os.environ["STOP"]) and not os.path.exists(f"{out}/past"):
        open(f"{out}/waits-{rank}", "w").close()
        time.sleep(0.02)
kept = [*model.state_dict().values(), order.generator.get_state(), torch.get_rng_state()]
digest = hashlib.sha256(b"".join(one.numpy().tobytes() for one in kept))
print(f"rank {rank} read {order.read} and ends with {digest.hexdigest()}", flush=True)
dist.destroy_process_group()
"""


@pytest.fixture(autouse=True)
def torch_there() -> None:
    if find_spec("torch") is None:
        pytest.skip("needs torch (the train extra)")
    needs_mounts()


async def run(cluster: Cluster, name: str, out: Path, lost: bool) -> tuple[list[str], list[int]]:
    """Run the job to its end; return what its ranks end with, and where the second began."""
    out.mkdir()
    script = out / "train.py"
    script.write_text(SCRIPT)
    told = {"OUT": str(out), "STEPS": str(STEPS), "STOP": str(STOP if lost else 0)}
    env = [{"name": key, "value": value} for key, value in told.items()]
    role = worker("python", str(script), env=env)
    await cluster.submit(name, role, framework="pytorch")
    if lost:
        await eventually((out / "waits-1").exists, PATIENCE, "all ranks wait")
        await eventually(lambda: elsewhere(cluster, name), PATIENCE, "copies are elsewhere")
        await cluster.kill(name, "worker-1")
        (out / "past").touch()
    await cluster.reaches(name, "Succeeded", PATIENCE)
    logs = [read_log(cluster.node, f"{name}-worker-{rank}") for rank in range(2)]
    ends = [line for log in logs for line in log.splitlines() if "ends with" in line]
    return ends, [int(step) for step in re.findall(r"rank 1 starts at (\d+)", logs[1])]


async def elsewhere(cluster: Cluster, name: str) -> bool:
    """Say whether each rank has a copy with another pod, though their own parts differ."""
    job = await cluster.job(name)
    copies = job.status.copies if job is not None else None
    return copies is not None and copies.elsewhere and not copies.alike


async def test_own_parts_of_a_lost_pod_come_back_exactly(cluster: Cluster, tmp_path: Path) -> None:
    calm, _ = await run(cluster, "calm", tmp_path / "calm", lost=False)
    ends, begun = await run(cluster, "lost", tmp_path / "lost", lost=True)
    assert len(calm) == 2
    assert ends == calm
    assert 0 < begun[-1] <= STOP
