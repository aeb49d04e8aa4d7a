"""Checks of a node find what is wrong, and pass where nothing is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from lockstep.health.checking import run
from lockstep.health.checks import Wrong, disk, matmul, memory


def test_sound_machines_pass_in_a_child(tmp_path: Path) -> None:
    found = run(["matmul", "memory", "disk"], tmp_path)
    assert [(one.name, one.state) for one in found if not one.device] == [
        ("matmul", "ok"),
        ("memory", "ok"),
        ("disk", "ok"),
    ], found
    assert not list(tmp_path.iterdir())


def test_one_wrong_element_of_a_product_is_found() -> None:
    def flips(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        product = a @ b
        product[3, 5] += 1
        return product

    with pytest.raises(Wrong, match="is wrong in 2 rows and columns"):
        matmul(flips)


def test_memory_of_any_size_holds(size: int = 4096) -> None:
    assert "hold" in memory(size)


def test_memory_is_checked_within_the_agents_limit() -> None:
    code = (
        # Of this program alone: ru_maxrss has also what its parent had when it started it.
        "from lockstep.health.checks import memory; memory(256 << 20);"
        "print(next(line.split()[1] for line in open('/proc/self/status') if 'VmHWM' in line))"
    )
    peak = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout
    assert int(peak) < 400 << 10, "KiB; the chart gives the agent 512 MiB, and it takes 70 itself"


def test_a_disk_that_cannot_be_written_fails(tmp_path: Path) -> None:
    found = run(["disk"], tmp_path / "missing")
    assert [one.state for one in found] == ["failed"]
    with pytest.raises(OSError):
        disk(tmp_path / "missing")


def test_a_check_that_does_not_end_has_failed(tmp_path: Path) -> None:
    (found,) = run(["matmul"], tmp_path, patience=0.01)
    assert (found.state, found.evidence) == ("failed", "no answer within 0 s")
