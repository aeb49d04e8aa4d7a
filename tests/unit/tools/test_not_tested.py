"""What a run says about the tests that did not run."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from tests.support import not_tested

ROOT = Path(__file__).parents[3]
PATTERNS = not_tested.listed("# a remark\nneeds a GPU  # none here\nno real Kubernetes: .*\n\n")


@pytest.mark.parametrize(
    ("reason", "allowed"),
    [
        ("needs a GPU", True),
        ("needs a GPU or two", False),
        ("no real Kubernetes: etcd is missing", True),
        ("needs mpirun", False),
        ("# a remark", False),
    ],
)
def test_a_pattern_allows_whole_reasons_only(reason: str, allowed: bool) -> None:
    assert (not_tested.unlisted([reason], PATTERNS) == []) is allowed


def test_the_summary_counts_each_reason() -> None:
    lines = not_tested.summary(Counter({"needs mpirun": 6, "no helm": 20}))
    assert lines == ["26 tests did not run:", "    20  no helm", "     6  needs mpirun"]
    assert not_tested.summary(Counter()) == ["every test that was chosen ran"]


def test_reports_become_reasons() -> None:
    reports = [("a.py", 1, "Skipped: needs root"), ("b.py", 2, "Skipped: needs root"), "plain"]
    assert not_tested.reasons(reports) == {"needs root": 2, "plain": 1}


@pytest.mark.parametrize(("ci", "code"), [("true", 1), ("", 0)])
def test_an_unlisted_skip_fails_the_gate(tmp_path: Path, ci: str, code: int) -> None:
    (tmp_path / "test_it.py").write_text(
        "import pytest\ndef test_runs():\n    pass\n"
        "def test_skips():\n    pytest.skip('needs a program from the moon')\n"
    )
    env = {**os.environ, "CI": ci, "PYTHONPATH": str(ROOT)}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "tests.conftest",
        "-p",
        "no:cacheprovider",
    ]
    done = subprocess.run(
        [*command, str(tmp_path)],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stdout
    ending = done.stdout[done.stdout.index("NOT TESTED") :]
    assert "   1  needs a program from the moon" in ending
    assert ("ERROR" in ending) is bool(code)
