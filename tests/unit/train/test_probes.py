"""Probes put the time of a step where it goes, in a real program that knows nothing of them."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from lockstep.api.probes import Sheet
from lockstep.api.wire import convert
from lockstep.train.probes import reading
from lockstep.train.probes.profiling import summary
from lockstep.train.probes.sampling import phase_of
from lockstep.train.probes.totals import Totals

SITE = Path(reading.__file__).parents[1] / "site"
PROGRAM = """
import sys, time, torch
from torch.utils.data import DataLoader, Dataset
class Waits(Dataset):
    def __len__(self): return 64
    def __getitem__(self, i):
        open("{data}").read()
        time.sleep(0.005)
        return torch.zeros(4), i
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(4):
    for x, _ in DataLoader(Waits(), batch_size=4, num_workers={workers}):
        optimizer.zero_grad(); model(x).sum().backward(); optimizer.step()
    torch.save(model.state_dict(), "{saved}")
print("done")
"""


def ran(tmp_path: Path, workers: int = 0, experiment: str = "") -> tuple[list[Sheet], str]:
    if find_spec("torch") is None:
        pytest.skip("needs torch (the train extra)")
    probes = tmp_path / "probes"
    probes.mkdir()
    (tmp_path / "data").write_text("x" * 1000)
    text = PROGRAM.format(data=tmp_path / "data", saved=tmp_path / "saved", workers=workers)
    env = {
        **os.environ,
        "PYTHONPATH": str(SITE),
        "RANK": "0",
        "LOCAL_RANK": "0",
        **reading.variables({}, probes),
    }
    if experiment:
        env["LOCKSTEP_EXPERIMENT"] = experiment
    # Its own file: lines of the user's code are looked up by it.
    program = tmp_path / "train.py"
    # The last sheet is that of the end: the thread that writes it has its own times.
    program.write_text(text + "import time; time.sleep(2.5)\n")
    done = subprocess.run(
        [sys.executable, str(program)],
        env=env,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "lockstep:" not in done.stderr
    return [convert(one, Sheet) for one in reading.sheets(probes)], done.stdout


@pytest.mark.torch
def test_a_rank_tells_where_its_time_goes(tmp_path: Path) -> None:
    (sheet,), said = ran(tmp_path)
    sums = sheet.sums
    assert said == "done\n"
    assert sums["steps"] == 61  # of 64: the first three are warming up
    assert sums["fetch.samples"] >= 4 * 60
    assert sums["fetch.opens"] == sums["fetch.samples"]
    assert sums["fetch.wall"] >= 60 * 4 * 0.005
    assert sums["fetch.user"] + sums["fetch.system"] < sums["fetch.wall"]
    assert sums["save.count"] == 4
    assert sheet.loader is not None
    assert sheet.loader.batch == 4
    assert "train.py:8 time.sleep(0.005)" in sheet.lines["input"]
    assert sheet.profile is not None
    assert sheet.profile.operations > 10


@pytest.mark.torch
def test_workers_of_the_loader_tell_their_part(tmp_path: Path) -> None:
    (sheet,), _ = ran(tmp_path, workers=2)
    assert sheet.sums["loader.epochs"] >= 3
    assert sheet.sums["loader.starting"] > 0
    assert sheet.sums.get("fetch.batches", 0) > 0


@pytest.mark.torch
def test_a_clone_ends_after_its_steps_and_saves_nothing(tmp_path: Path) -> None:
    sheets, said = ran(tmp_path, experiment='{"change": "no_checkpoint", "steps": 40}')
    assert said == ""
    assert sheets[0].sums["steps"] == 37
    assert not (tmp_path / "saved").exists()


@pytest.mark.torch
def test_a_cached_batch_takes_the_wait_away(tmp_path: Path) -> None:
    (sheet,), _ = ran(tmp_path, experiment='{"change": "cached_batch", "steps": 40}')
    assert sheet.sums.get("fetch.batches", 0) == 0
    assert sheet.sums["steps"] == 37


PHASES = [
    ("input", ["t.py", "/x/torch/utils/data/dataloader.py", "d.py"], "print(1)"),
    ("checkpoint", ["t.py", "/x/torch/serialization.py"], "torch.save(m, f)"),
    ("logging", ["t.py"], "print(loss)"),
    ("logging", ["t.py", "/x/urllib/request.py"], "post(loss)"),
    ("metrics", ["t.py", "/x/sklearn/metrics.py"], "auc(y)"),
    ("collective", ["t.py", "/x/torch/distributed/distributed_c10d.py"], "dist.all_reduce(x)"),
    ("sync", ["t.py"], "total += loss.item()"),
    ("backward", ["t.py", "/x/torch/autograd/graph.py"], "loss.backward()"),
    ("compute", ["t.py", "/x/torch/nn/modules/linear.py"], "y = model(x)"),
]


@pytest.mark.parametrize(("phase", "files", "code"), PHASES)
def test_frames_tell_the_phase(phase: str, files: list[str], code: str) -> None:
    assert phase_of(files, code) == phase


def test_only_talk_beside_no_work_is_exposed() -> None:
    events = [
        ("aten::mm", 0.0, 100.0, False, 1),
        ("gloo:all_reduce", 50.0, 100.0, False, 2),
        ("aten::add_", 140.0, 30.0, False, 1),
    ]
    found = summary(events, 1)
    assert found["communication"] == pytest.approx(100e-6)
    assert found["exposed"] == pytest.approx(40e-6)
    assert found["work"] == pytest.approx(130e-6)


def test_the_window_forgets_what_is_long_ago() -> None:
    now = [0.0]
    totals = Totals(lambda: now[0])
    for _ in range(100):
        now[0] += 1.0
        totals.add("steps", 1)
        told = totals.sheet()
    assert 30 <= told["wall"] <= 61
    assert told["sums"]["steps"] == pytest.approx(told["wall"], abs=1)
