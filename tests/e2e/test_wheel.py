"""The built wheel alone, in an empty environment, runs the quick start."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from tests.support.doc_commands import commands
from tests.support.waiting import stretched

from lockstep import __version__

ROOT = Path(__file__).resolve().parents[2]


def done(command: list[str], folder: Path, environment: dict[str, str] | None = None) -> str:
    """Run a command to its end and return what it printed."""
    ended = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=stretched(300),
        check=False,
    )
    assert ended.returncode == 0, f"{' '.join(command)}:\n{ended.stdout}"
    return ended.stdout


@pytest.mark.soak
def test_the_wheel_runs_the_quick_start_from_an_empty_environment(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    done(build, ROOT)
    (wheel,) = tmp_path.glob(f"lockstep-{__version__}-*.whl")
    scripts = tmp_path / "empty" / "bin"
    venv.create(scripts.parent, with_pip=True)
    done([str(scripts / "pip"), "install", "-q", str(wheel)], tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    home = {name: str(tmp_path) for name in ("HOME", "XDG_DATA_HOME")}
    environment = {**home, "PATH": f"{scripts}:{os.environ['PATH']}"}
    started, *others, _ = commands(ROOT / "docs" / "quickstart.md")
    done([*started.words, "--port", "0"], tmp_path, environment)
    try:
        assert f"client {__version__}" in done(["lockstep", "version"], tmp_path, environment)
        for one in others:
            printed = done(one.words, tmp_path, environment)
            assert one.shown(printed), f"{' '.join(one.words)}:\n{printed}"
    finally:
        done(["lockstep", "down"], tmp_path, environment)
