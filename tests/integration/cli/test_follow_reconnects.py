"""Following a log over the death of the node and of the API server."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest
from tests.support.control_plane import LOCKSTEP, ControlPlane
from tests.support.waiting import eventually_sync

TICK = "import time\nfor n in range(40): print('tick', n, flush=True); time.sleep(0.2)"


@pytest.mark.parametrize("part", ["process-node", "apiserver"])
def test_a_follower_goes_on_where_it_was(plane: ControlPlane, tmp_path: Path, part: str) -> None:
    name = f"lf-{part}"
    plane.ok("submit", "plain", "--name", name, "--", "python", "-c", TICK)
    plane.eventually_phase(name, "Running")
    out = tmp_path / "out"
    with out.open("wb") as file:
        follower = subprocess.Popen(
            [*LOCKSTEP, "logs", name, "-f"],
            stdout=file,
            env={**os.environ, "KUBECONFIG": str(plane.kubeconfig)},
        )
    eventually_sync(lambda: b"tick 3" in out.read_bytes(), 60, "it follows")
    pid = plane.child(part)
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    assert follower.wait(120) == 0
    assert out.read_text().splitlines() == [f"tick {n}" for n in range(40)]
