"""The command that simulates nodes, as people start it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.waiting import stretched


@pytest.mark.parametrize(
    ("spec", "words"),
    [("64", "64x8"), ("64x8,racks=2", "racks is not an option"), ("2x8", "no kubeconfig at")],
)
def test_what_is_wrong_is_said_in_one_line(tmp_path: Path, spec: str, words: str) -> None:
    kubeconfig = tmp_path / "nowhere"
    done = subprocess.run(
        [sys.executable, "-m", "lockstep", "simulate-nodes", spec, "--kubeconfig", kubeconfig],
        capture_output=True,
        text=True,
        timeout=stretched(60),
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert words in done.stderr
    assert "Traceback" not in done.stderr
