"""A rank's steps become known without a line of its code."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from lockstep.train.meters import Meters, suspected
from lockstep.train.telemetry import RING, SIZE, Meter, Reading

needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="needs torch (the train extra)")

PROGRAM = """
import subprocess, sys, time
import torch
from torch.utils.data import DataLoader

class Slow(torch.utils.data.Dataset):
    def __len__(self): return 5
    def __getitem__(self, i):
        # Longer than any step took, however busy the machine is.
        time.sleep(max(0.02, 3 * longest))
        return torch.ones(2)

m = torch.nn.Linear(2, 2)
optimizer, other = (torch.optim.SGD(m.parameters(), lr=0.1) for _ in range(2))
if len(sys.argv) == 1:
    # A child has the variables of a rank, and is none.
    subprocess.run([sys.executable, __file__, "child"], check=True)
longest = 0.0
for batch in DataLoader(Slow(), batch_size=None):
    began = time.perf_counter()
    m(batch).sum().backward()
    optimizer.step()
    other.step()
    longest = max(longest, time.perf_counter() - began)
if len(sys.argv) == 1:
    print("ready", flush=True)
    sys.stdin.read()
"""


def meter() -> Meter:
    return Meter(bytearray(SIZE))


def test_a_meter_keeps_its_last_steps() -> None:
    there = meter()
    there.start(1.0)
    for step in range(RING + 10):
        there.step(2.0 + step, 1.0 if step < RING else 3.0, 0.25, 7)
    shown = there.read()
    assert (shown.steps, shown.last, shown.memory) == (RING + 10, 2.0 + RING + 9, 7)
    assert (shown.quantile(0.5), shown.quantile(0.99)) == (1.0, 3.0)
    assert shown.data == pytest.approx(0.25 * RING / (RING - 10 + 30))


@pytest.mark.parametrize(
    ("steps", "usual", "since", "hangs"),
    [(2, 0.1, 99.0, False), (3, 0.1, 4.0, False), (3, 0.1, 6.0, True), (9, 10.0, 29.0, False)],
    ids=["too few steps", "five seconds", "longer", "slow steps"],
)
def test_a_rank_is_suspected_by_its_own_steps(
    steps: int, usual: float, since: float, hangs: bool
) -> None:
    shown = Reading(steps, 100.0, 0.0, 1, 0, True, [(usual, 0.0)] * steps)
    assert suspected(shown, 100.0 + since) is hangs


@needs_torch
def test_steps_waits_and_stacks_of_a_real_rank(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(PROGRAM)
    image = tmp_path / "image"
    image.mkdir()
    (image / "sitecustomize.py").write_text("print('the next one', flush=True)\n")
    meters = Meters(tmp_path)
    meters.begin(3)
    env = {**os.environ, "PYTHONPATH": str(image)}
    env |= {"RANK": "4", "LOCAL_RANK": "0", "LOCKSTEP_GENERATION": "3"}
    env |= meters.variables(env)
    rank = subprocess.Popen(
        [sys.executable, str(script)],
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert rank.stdout is not None
        said = [rank.stdout.readline().strip() for _ in range(3)]
        assert said == ["the next one", "the next one", "ready"]
        (told,) = meters.told(1)
        assert (told["local"], told["pid"], told["steps"]) == (0, rank.pid, 5)
        assert 0.5 < told["data"] <= 1
        assert b"train.py" in meters.ask(0, "dump_traceback", 60)
        assert meters.ask(0, "ping", 60) == b"pong"
    finally:
        _, errors = rank.communicate(timeout=120)
    assert (rank.returncode, errors) == (0, "")


def test_outside_a_rank_the_next_one_alone_runs(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.next_one = __file__\n")
    env = {"PYTHONPATH": str(tmp_path)}
    env |= Meters(tmp_path).variables(env)
    script = "import sys; print(sys.next_one, [m for m in sys.modules if 'lockstep' in m])"
    done = subprocess.run(
        [sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{tmp_path}/sitecustomize.py []\n"
