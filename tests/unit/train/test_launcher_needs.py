"""The launcher runs where the user's program runs: old Pythons, nothing installed."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

import lockstep.train
from lockstep.train.deliver import main as deliver

HOME = Path(lockstep.train.__file__).parent


@pytest.mark.parametrize("path", sorted(HOME.glob("*.py")), ids=lambda path: path.name)
def test_every_module_is_python_3_9(path: Path) -> None:
    ast.parse(path.read_text(), feature_version=(3, 9))


def test_the_launcher_imports_the_standard_library_alone() -> None:
    script = (
        "import sys; before = set(sys.modules)\n"
        "import lockstep.train.run, lockstep.train.torchrun\n"
        "print(*sorted({m.partition('.')[0] for m in set(sys.modules) - before}))"
    )
    said = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    ).stdout.split()
    assert set(said) - set(sys.stdlib_module_names) == {"lockstep"}


def test_outside_a_job_the_command_runs_alone() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "lockstep.train.run", "--", "echo", "here"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env={"PATH": "/usr/bin:/bin"},
    )
    assert done.stdout == "here\n"


def test_delivered_files_run_on_bare_python_and_serve_ranks(tmp_path: Path) -> None:
    assert deliver([str(tmp_path / "run")]) == 0
    assert deliver([str(tmp_path / "run")]) == 0, "again, after a crash"
    # A name of the standard library in the program's directory does not stop the launcher.
    (tmp_path / "queue.py").write_text("raise SystemExit(3)")
    launcher = tmp_path / "run" / "bin" / "lockstep-run"
    # The image of a job has a Python, and nothing of Lockstep.
    venv.create(tmp_path / "image")
    done = subprocess.run(
        [str(launcher), "--", "echo", "here"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        cwd=tmp_path,
        env={"PATH": f"{tmp_path}/image/bin:/usr/bin:/bin"},
    )
    assert done.stdout == "here\n"
    script = "import lockstep.train, lockstep.api; print(lockstep.train.__file__)"
    env = {**os.environ, "PYTHONPATH": str(tmp_path / "run" / "lib")}
    said = subprocess.run(
        [sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True
    )
    assert said.stdout.startswith(str(tmp_path / "run")), "with the rest of the image's own"
