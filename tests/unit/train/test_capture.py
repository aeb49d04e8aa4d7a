"""A program without a line of Lockstep's goes on at its step, bit by bit, or begins anew."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.support.plain_program import PLAIN

from lockstep.train.memory import Counter, Memory
from lockstep.train.meters import Meters

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(find_spec("torch") is None, reason="needs torch (the train extra)"),
]
DIE = 37
"""In the third epoch, of 15 steps each."""


class Pod:
    """A launcher's memory, and the lives of its only rank."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir()
        self.script = directory / "train.py"
        self.script.write_text(PLAIN)
        self.directory, self.memory, self.meters = directory, Memory(), Meters(directory)
        self.counter = Counter(directory, self.memory)
        threading.Thread(target=self.counter.serve, daemon=True).start()
        self.generation = 0

    def live(self, **env: str) -> tuple[int, str, str]:
        """Run the program from the newest step that is kept; return code, output and errors."""
        self.generation += 1
        newest = max((one["step"] for one in self.memory.snapshots(0)), default=None)
        losses = json.dumps(self.meters.losses(1))
        self.meters.begin(self.generation)
        told = {
            **{key: one for key, one in os.environ.items() if key not in ("RANK", "LOCAL_RANK")},
            "OUT": str(self.directory),
            "DIED": str(self.directory / "died"),
            "LOCKSTEP_ALONE": "1",
            "LOCKSTEP_SOCKET": self.counter.path,
            "LOCKSTEP_GENERATION": str(self.generation),
            "LOCKSTEP_RESUME": "" if newest is None else str(newest),
            "LOCKSTEP_LOSSES": losses,
            "LOCKSTEP_CAPTURE": "off" if self.memory.forgotten else "",
            **env,
        }
        told |= self.meters.variables(told)
        done = subprocess.run(
            [sys.executable, self.script], env=told, capture_output=True, text=True, check=False
        )
        return done.returncode, done.stdout, done.stderr


def end(output: str) -> str:
    """Return what the program ends with, but for the number that it never seeded."""
    return re.findall(r"ends with (.*) \S+", output)[0]


def test_a_program_without_our_lines_goes_on_exactly(tmp_path: Path) -> None:
    pod = Pod(tmp_path / "lost")
    code, first, said = pod.live(DIE=str(DIE))
    assert (code, "keeps Net, Adam of this program" in said) == (-9, True)
    best = (tmp_path / "lost" / "best-0.pt").stat().st_mtime_ns
    code, second, said = pod.live()
    assert code == 0, said
    assert f"step {DIE}, made again, gave the same bits: the copy is whole" in said
    # What was made before is printed once, and its files are not saved once more.
    assert "begins" not in second
    assert re.findall(r"step (\d+) ", second)[0] == str(DIE - 1)
    assert (tmp_path / "lost" / "best-0.pt").stat().st_mtime_ns > best
    again = Pod(tmp_path / "calm")
    _, calm, _ = again.live(LOCKSTEP_CAPTURE="off")
    assert end(second) == end(calm)
    assert re.findall(r"step 1 .*", first) == re.findall(r"step 1 .*", calm)


def test_a_program_with_hidden_state_begins_anew(tmp_path: Path) -> None:
    pod = Pod(tmp_path / "hidden")
    pod.live(DIE=str(DIE), HIDDEN="1")
    code, _, said = pod.live(HIDDEN="1")
    assert code == 1
    assert "made again, does not give the same: module0-Net.first.weight differs" in said
    assert "ckpt = Checkpointer(model=model, optimizer=optimizer)" in said
    code, output, _ = pod.live(HIDDEN="1")
    assert (code, output.startswith("begins")) == (0, True)
