"""A script traced without computing holds what it holds when it is computed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from tests.support.waiting import stretched

pytestmark = pytest.mark.torch

SCRIPT = """
import sys, torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
width, depth, batch, kind = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
layers = []
for _ in range(depth):
    layers += [nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)]
model = nn.Sequential(*layers)
optimizer = getattr(torch.optim, kind)(model.parameters(), lr=0.001)
data = TensorDataset(torch.randn(4 * batch, width), torch.randn(4 * batch, width))
for x, y in DataLoader(data, batch_size=batch):
    loss = (model(x) - y).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("loss", loss.item())
"""
MEASURED = """
import json, runpy, sys, torch
from torch.profiler import ProfilerActivity, profile
result, *rest = sys.argv[1:]
sys.argv = rest
with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as found:
    runpy.run_path(rest[0], run_name="__main__")
events = found.profiler.kineto_results.events()
now = peak = 0
for one in sorted((e for e in events if e.name() == "[memory]"), key=lambda e: e.start_ns()):
    now += one.nbytes()
    peak = max(peak, now)
open(result, "w").write(str(peak))
"""

SHAPES = [
    pytest.param(("256", "4", "64", "AdamW"), marks=pytest.mark.soak),
    pytest.param(("256", "2", "1024", "SGD"), marks=pytest.mark.soak),
    ("512", "3", "16", "Adam"),
]


@pytest.fixture
def script(tmp_path: Path) -> Path:
    if find_spec("torch") is None:
        pytest.skip("needs torch (the train extra)")
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    return path


def estimate(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-m", "lockstep", "estimate", *arguments],
        capture_output=True,
        text=True,
        timeout=stretched(200),
        check=False,
        env={**os.environ},
    )


@pytest.mark.parametrize("shape", SHAPES)
def test_the_traced_peak_is_that_of_a_run(
    script: Path, tmp_path: Path, shape: tuple[str, ...]
) -> None:
    done = estimate("-o", "json", "--", sys.executable, str(script), *shape)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    (tmp_path / "measure.py").write_text(MEASURED)
    result = tmp_path / "peak"
    subprocess.run(
        [sys.executable, str(tmp_path / "measure.py"), str(result), str(script), *shape],
        check=True,
        timeout=stretched(200),
        capture_output=True,
    )
    assert sum(found["bytes"].values()) == pytest.approx(int(result.read_text()), rel=0.05)
    assert found["bytes"]["parameters"] == pytest.approx(found["params"] * 4)
    assert found["reserved"] >= found["allocated"]


def test_what_cannot_be_traced_is_named_with_its_line(tmp_path: Path) -> None:
    if find_spec("torch") is None:
        pytest.skip("needs torch (the train extra)")
    path = tmp_path / "train.py"
    path.write_text("import torch\nx = torch.randn(8)\nprint(x[x > 0].numpy().tobytes())\n")
    done = estimate("--", sys.executable, str(path))
    assert done.returncode == 1
    assert "train.py:3" in done.stderr
    assert "lockstep estimate --params" in done.stderr
