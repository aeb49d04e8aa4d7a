"""A program without a line of Lockstep's goes on at its step, bit by bit, or begins anew."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.support.one_rank import Pod
from tests.support.plain_program import PLAIN

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(find_spec("torch") is None, reason="needs torch (the train extra)"),
]
DIE = 37
"""In the third epoch, of 15 steps each."""


def end(output: str) -> str:
    """Return what the program ends with, but for the number that it never seeded."""
    return re.findall(r"ends with (.*) \S+", output)[0]


def test_a_program_without_our_lines_goes_on_exactly(tmp_path: Path) -> None:
    pod = Pod(tmp_path / "lost", PLAIN)
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
    again = Pod(tmp_path / "calm", PLAIN)
    _, calm, _ = again.live(LOCKSTEP_CAPTURE="off")
    assert end(second) == end(calm)
    assert re.findall(r"step 1 .*", first) == re.findall(r"step 1 .*", calm)


def test_a_program_with_hidden_state_begins_anew(tmp_path: Path) -> None:
    pod = Pod(tmp_path / "hidden", PLAIN)
    pod.live(DIE=str(DIE), HIDDEN="1")
    code, _, said = pod.live(HIDDEN="1")
    assert code == 1
    assert "made again, does not give the same: module0-Net.first.weight differs" in said
    assert "ckpt = Checkpointer(model=model, optimizer=optimizer)" in said
    code, output, _ = pod.live(HIDDEN="1")
    assert (code, output.startswith("begins")) == (0, True)
