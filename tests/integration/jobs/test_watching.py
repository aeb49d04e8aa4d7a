"""Real gloo ranks that go on, and not as they should: the one that is at fault is named."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.support.process_node import needs_mounts
from tests.support.training import Cluster
from tests.support.waiting import eventually

from lockstep.api.training import TrainingJobStatus

pytestmark = [pytest.mark.torch, pytest.mark.timeout(300), pytest.mark.real_sample()]

PATIENCE = 200.0
CULPRIT = 2
SCRIPT = """
import math, os, sys, time, torch, torch.distributed as dist

KIND, CULPRIT = sys.argv[1], int(sys.argv[2])
dist.init_process_group("gloo")
odd = dist.get_rank() == CULPRIT
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
for step in range(100_000):
    # Work that takes a tenth longer on one rank.
    time.sleep(0.22 if KIND == "slow" and odd else 0.2)
    loss = model(torch.ones(1, 4)).sum() ** 2
    if step == 20 and KIND == "nan" and odd:
        loss = loss * math.nan
    if step >= 40 and KIND == "spike":
        loss = loss * 1000
    optimizer.zero_grad()
    loss.backward()
    if KIND == "spike":
        optimizer.zero_grad()
    optimizer.step()
"""
KINDS = {
    "nan": ("LossAbnormal", "hardware", [CULPRIT], "of rank 2 alone is no number"),
    "spike": ("LossAbnormal", "user", [], "the loss rose to"),
    "slow": ("Straggling", "hardware", [CULPRIT], "rank 2 is"),
}


@pytest.mark.parametrize(
    "kind", ["nan", *(pytest.param(one, marks=pytest.mark.soak) for one in ("spike", "slow"))]
)
async def test_ranks_that_go_on_wrong_are_named(
    cluster: Cluster, tmp_path: Path, kind: str
) -> None:
    if find_spec("torch") is None:
        pytest.skip("needs torch (the train extra)")
    needs_mounts()
    name = f"odd-{kind}"
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    container = {
        "name": "main",
        "image": "none",
        "command": ["python3", str(script), kind, str(CULPRIT)],
        "env": [{"name": "OMP_NUM_THREADS", "value": "1"}],
    }
    template = {"spec": {"terminationGracePeriodSeconds": 1, "containers": [container]}}
    roles = {"name": "worker", "replicas": 2, "processesPerNode": 2, "template": template}
    await cluster.submit(name, roles, framework="pytorch")
    type_, class_, ranks, words = KINDS[kind]

    async def told() -> TrainingJobStatus | None:
        job = await cluster.job(name)
        if job is None:
            return None
        odd = any(one.type == type_ and one.status == "True" for one in job.status.conditions)
        return job.status if odd else None

    status = await eventually(told, PATIENCE, f"the condition {type_}")
    assert status is not None and status.diagnosis is not None
    verdict = status.diagnosis
    assert (verdict.class_, verdict.place.ranks) == (class_, ranks), verdict
    assert words in verdict.cause
    assert status.restarts == 0, "nothing is restarted for it"
    print(f"{kind}: {verdict.cause}")
