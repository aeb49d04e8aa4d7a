"""A DDP program without a line of Lockstep's loses a rank, and ends with the same bits."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.support.plain_program import PLAIN
from tests.support.process_node import needs_mounts, read_log
from tests.support.survivors import PATIENCE, worker
from tests.support.training import Cluster

pytestmark = [pytest.mark.soak, pytest.mark.torch, pytest.mark.timeout(900)]

DIE = 21
"""In the third epoch, of 8 steps each."""


@pytest.fixture(autouse=True)
def torch_there() -> None:
    if find_spec("torch") is None:
        pytest.skip("needs torch (the train extra)")
    needs_mounts()


async def run(cluster: Cluster, name: str, out: Path, **more: str) -> list[str]:
    """Run the program to its end; return the logs of its two ranks."""
    out.mkdir()
    script = out / "train.py"
    script.write_text(PLAIN)
    told = {"OUT": str(out), "DIED": str(out / "died"), **more}
    env = [{"name": key, "value": value} for key, value in told.items()]
    await cluster.submit(name, worker("python", str(script), env=env), framework="pytorch")
    await cluster.reaches(name, "Succeeded", PATIENCE)
    return [read_log(cluster.node, f"{name}-worker-{rank}") for rank in range(2)]


def ends(logs: list[str]) -> list[str]:
    return [re.findall(r"ends with (.*) \S+", log)[-1] for log in logs]


async def test_a_killed_rank_of_a_plain_program_goes_on(cluster: Cluster, tmp_path: Path) -> None:
    calm = await run(cluster, "calm", tmp_path / "calm")
    logs = await run(cluster, "lost", tmp_path / "lost", DIE=str(DIE))
    assert ends(logs) == ends(calm)
    assert re.search(r"made again, gave the same.*: the copy is whole", logs[0])
    # None of its steps is printed twice but the one that proves it.
    assert len(re.findall(r"^step", logs[0], re.M)) <= 32 + 2
    job = await cluster.job("lost")
    assert job is not None
    assert sum(job.status.goodput.lost.values()) <= 1
