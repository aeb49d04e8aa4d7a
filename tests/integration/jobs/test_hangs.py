"""Real gloo ranks that do not go on: the culprit is named, with what keeps it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.support.apiserver import ApiServer
from tests.support.kube_cluster import KubeCluster
from tests.support.process_node import needs_mounts
from tests.support.training import Cluster
from tests.support.waiting import eventually

from lockstep.api.diagnosis import Diagnosis

pytestmark = [pytest.mark.torch, pytest.mark.timeout(600), pytest.mark.real_sample()]

PATIENCE = 280.0
CULPRIT = 2
SCRIPT = """
import ctypes, os, sys, time, torch, torch.distributed as dist
from torch.utils.data import DataLoader, Dataset

KIND, CULPRIT, OUT = sys.argv[1], int(sys.argv[2]), os.environ["OUT"]

class Numbers(Dataset):
    def __len__(self): return 10_000
    def __getitem__(self, index):
        if KIND == "loader" and index >= 8 and int(os.environ["RANK"]) == CULPRIT:
            time.sleep(600)
        return torch.ones(4)

dist.init_process_group("gloo")
rank = dist.get_rank()
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

def hang():
    with open(f"{OUT}/hangs", "w") as file:
        file.write(str(os.getpid()))
    if KIND == "sleep":
        time.sleep(600)
    elif KIND == "lock":
        ctypes.PyDLL(None).sleep(600)  # keeps the interpreter's lock
    elif KIND == "stop":
        os.kill(os.getpid(), 19)

for step, batch in enumerate(DataLoader(Numbers(), batch_size=1)):
    loss = model(batch).sum()
    optimizer.zero_grad()
    loss.backward()
    if step == 8 and rank == CULPRIT and KIND not in ("skip", "loader"):
        hang()
    for parameter in model.parameters():
        if step == 8 and rank == CULPRIT and KIND == "skip" and parameter is model.weight:
            continue
        dist.all_reduce(parameter.grad)
    optimizer.step()
    time.sleep(0.05)
"""


@pytest.fixture(autouse=True)
def torch_there() -> None:
    if find_spec("torch") is None:
        pytest.skip("needs torch (the train extra)")
    needs_mounts()


KINDS = {
    "stop": ("platform", r"rank 2 is stopped"),
    "sleep": ("software", r"rank 2 has not come, at train\.py:\d+ in hang"),
    "lock": ("software", r"rank 2 holds the interpreter's lock"),
    "loader": ("storage", r"rank 2 waits for data, at dataloader\.py"),
    "skip": (
        "user",
        r"rank 2 (?:calls all_reduce where|has gone past where) .* something else",
    ),
}


@pytest.mark.parametrize(
    "kind",
    ["stop", *(pytest.param(k, marks=pytest.mark.soak) for k in KINDS if k != "stop")],
)
async def test_the_culprit_of_a_hang_is_named(
    cluster: Cluster, jobs_server: ApiServer, tmp_path: Path, kind: str
) -> None:
    name = f"hang-{kind}"
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    container = {
        "name": "main",
        "image": "none",
        "command": ["python3", str(script), kind, str(CULPRIT)],
        "env": [{"name": "OUT", "value": str(tmp_path)}, {"name": "OMP_NUM_THREADS", "value": "1"}],
    }
    template = {"spec": {"terminationGracePeriodSeconds": 1, "containers": [container]}}
    roles = {"name": "worker", "replicas": 2, "processesPerNode": 2, "template": template}
    await cluster.submit(name, roles, framework="pytorch")

    async def told() -> Diagnosis | None:
        job = await cluster.job(name)
        return job.status.diagnosis if job is not None else None

    verdict = await eventually(told, PATIENCE, "a verdict")
    assert verdict is not None
    class_, words = KINDS[kind]
    assert (verdict.class_, verdict.place.ranks) == (class_, [CULPRIT]), verdict
    assert re.search(words, verdict.cause), verdict.cause
    print(f"{kind}: {verdict.cause}")
    # The kube-apiserver of the tests has no key that kubelets know.
    if kind == "stop" and not isinstance(jobs_server, KubeCluster):
        await collected(jobs_server, name, tmp_path / "found")
    if (tmp_path / "hangs").exists():
        print(f"named {time.time() - (tmp_path / 'hangs').stat().st_mtime:.1f} s after")
        os.kill(int((tmp_path / "hangs").read_text()), signal.SIGKILL)


async def collected(server: ApiServer, name: str, folder: Path) -> None:
    """All that the ranks tell is kept, and judged as the controllers do."""
    words = ["diagnose", name, "--collect", str(folder), "-o", "json"]
    config = ["--kubeconfig", str(server.kubeconfig), "-n", "default"]
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "lockstep", *words, *config, stdout=asyncio.subprocess.PIPE
    )
    said, _ = await child.communicate()
    assert child.returncode == 0
    assert json.loads(said)["place"]["ranks"] == [CULPRIT]
    told = {one: sorted(p.name for p in (folder / one).iterdir()) for one in ("ranks", "traces")}
    # One that is stopped answers nothing; the kernel says so.
    assert told["ranks"] == [f"rank-{rank}.json" for rank in range(4)]
    assert told["traces"] == [f"trace-{rank}" for rank in range(4) if rank != CULPRIT]
    assert len(list((folder / "logs").iterdir())) == 2
