"""A program's own newer checkpoint outlives a restart at an earlier step."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lockstep.train.meters import Meters
from lockstep.train.own_saves import OwnSaves

PROGRAM = """
import os, sys, torch
steps, load = int(sys.argv[1]), sys.argv[2:]
m = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(m.parameters(), lr=0.1)
if load:
    m.load_state_dict(torch.load(load[0]))
for step in range(steps):
    m(torch.ones(2)).sum().backward()
    optimizer.step()
torch.save(m.state_dict(), "last.pt.part")
os.replace("last.pt.part", "last.pt")
"""


class Program:
    """One rank in its generation: at a step, with files that it saves and loads."""

    def __init__(self, folder: Path, job: str = "default/digits-world") -> None:
        self.step = 0
        self.torch: Any = SimpleNamespace(
            save=lambda obj, f: Path(f).write_text(obj), load=lambda f: Path(f).read_text()
        )
        self.saves = OwnSaves(job, lambda: self.step, folder / f"{job[8:]}.json")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    # What the program renames, it renames by the functions that watch puts in their place.
    monkeypatch.setattr(os, "replace", os.replace)
    monkeypatch.setattr(os, "rename", os.rename)
    return tmp_path


def save(program: Program, path: Path, step: int, how: str) -> None:
    program.step = step
    if how == "in place":
        program.torch.save(f"{step}", str(path))
        return
    part = path.with_suffix(".part")
    program.torch.save(f"{step}", part)
    os.replace(part, path)  # noqa: PTH105  as programs do


@pytest.mark.parametrize("how", ["in place", "renamed"])
@pytest.mark.parametrize("marks", [True, False])
@pytest.mark.parametrize(
    ("job", "step", "kept"),
    [
        ("default/digits-world", 5, True),
        ("default/digits-world", 20, False),
        ("default/digits-world", 30, False),
        ("default/another-world", 5, False),
    ],
)
def test_only_a_newer_file_of_the_job_is_kept(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *,
    how: str,
    marks: bool,
    job: str,
    step: int,
    kept: bool,
) -> None:
    if not marks:
        monkeypatch.delattr(os, "setxattr")
        monkeypatch.delattr(os, "getxattr")
    path, aside = folder / "last.pt", folder / "last.pt.step-20"
    first = Program(folder)
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", os.replace)
        first.saves.watch(first.torch)
        save(first, path, 20, how)
    later = Program(folder, job)
    later.saves.watch(later.torch)
    save(later, path, step, how)
    assert path.read_text() == f"{step}"
    assert (aside.read_text() if kept else aside.exists()) == ("20" if kept else False)
    assert (f"{path} holds step 20" in capsys.readouterr().err) is kept
    again = Program(folder, job)
    again.saves.watch(again.torch)
    again.torch.load(aside if kept else path)
    assert again.saves.loaded == (20 if kept else step)


@pytest.mark.skipif(find_spec("torch") is None, reason="needs torch (the train extra)")
def test_a_real_program_tells_the_step_it_began_at(tmp_path: Path) -> None:
    script, places = tmp_path / "train.py", tmp_path / "launcher"
    script.write_text(PROGRAM)
    places.mkdir()
    meters = Meters(places)
    told, errors = [], []
    for generation, args in enumerate((["20"], ["5"], ["3", "last.pt.step-20"]), 1):
        meters.begin(generation)
        env = dict(os.environ) | {"RANK": "0", "LOCAL_RANK": "0", "LOCKSTEP_WORLD": "digits-world"}
        env |= {"LOCKSTEP_GENERATION": f"{generation}"} | meters.variables(dict(os.environ))
        command = [sys.executable, str(script), *args]
        done = subprocess.run(
            command, env=env, cwd=tmp_path, capture_output=True, text=True, check=True
        )
        told += [(one["begun"], one["steps"]) for one in meters.told(1)]
        errors.append(done.stderr)
    assert told == [(0, 20), (0, 5), (20, 3)]
    assert "the newer file is kept as last.pt.step-20" in errors[1]
    assert errors[0] == errors[2] == ""
