"""Each command of the guides and the quick start prints what its page shows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.control_plane import LOCKSTEP, ControlPlane
from tests.support.doc_commands import commands, python_block
from tests.support.waiting import stretched

ROOT = Path(__file__).resolve().parents[2]
OWN = ("up", "down")
"""Commands that the test replaces by a plane of its own."""


@pytest.mark.parametrize(
    "guide", ["quickstart", "guides/ml-engineer", "guides/platform-engineer", "guides/team-lead"]
)
def test_a_guide_shows_what_its_commands_print(guide: str, tmp_path: Path) -> None:
    page = ROOT / "docs" / f"{guide}.md"
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    if guide == "guides/ml-engineer":
        (tmp_path / "train.py").write_text(python_block(page))
    shown = commands(page)
    assert [one.words[1] for one in (shown[0], shown[-1])] == list(OWN)
    plane = ControlPlane(tmp_path / "data", *shown[0].words[3:]).start()
    scripts = Path(sys.executable).parent
    environment = {
        **os.environ,
        "KUBECONFIG": str(plane.kubeconfig),
        "PATH": f"{scripts}:{os.environ['PATH']}",
    }
    try:
        for one in shown[1:-1]:
            assert one.words[0] == "lockstep"
            done = subprocess.run(
                [*LOCKSTEP, *one.words[1:]],
                cwd=tmp_path,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=stretched(200),
                check=False,
            )
            assert one.shown(done.stdout), f"{' '.join(one.words)}:\n{done.stdout}"
    finally:
        plane.stop()
