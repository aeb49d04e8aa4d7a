"""Checks of a node find what is wrong, and pass where nothing is."""

from __future__ import annotations

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


def test_a_disk_that_cannot_be_written_fails(tmp_path: Path) -> None:
    found = run(["disk"], tmp_path / "missing")
    assert [one.state for one in found] == ["failed"]
    with pytest.raises(OSError):
        disk(tmp_path / "missing")


def test_a_check_that_does_not_end_has_failed(tmp_path: Path) -> None:
    (found,) = run(["matmul"], tmp_path, patience=0.01)
    assert (found.state, found.evidence) == ("failed", "no answer within 0 s")
