"""The whole control plane as processes: started, killed in parts, stopped, resumed."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
from pathlib import Path

import pytest
from tests.support.control_plane import LOCKSTEP, ControlPlane, processes
from tests.support.waiting import eventually_sync, stretched

PARTS = (
    "apiserver",
    "scheduler",
    "controllers",
    "process-node",
    "gateway",
    "router",
    "console",
    "simulate-nodes",
)


def test_it_says_where_it_is_and_writes_a_private_kubeconfig(plane: ControlPlane) -> None:
    assert plane.export_line == f"export KUBECONFIG={plane.kubeconfig}\n"
    assert stat.S_IMODE(plane.kubeconfig.stat().st_mode) == 0o600
    assert all(plane.child(part) for part in PARTS)
    assert {path.stem for path in (plane.data / "log").glob("*.log")} == set(PARTS)


def test_it_begins_with_kinds_a_queue_a_topology_and_nodes(plane: ControlPlane) -> None:
    assert plane.ok("list", "queues", "-o", "name") == "queue/default\n"
    assert plane.ok("list", "topologies", "-o", "name") == "topology/default\n"
    assert plane.ok("list") == ""
    assert len(plane.ok("node", "list", "-o", "name").splitlines()) == 5


def test_a_second_one_on_the_same_data_is_refused(plane: ControlPlane) -> None:
    for more in ((), ("--detach",)):
        second = plane.run("up", "--data", str(plane.data), "--port", "0", *more)
        assert second.returncode == 1
        assert f"already runs on {plane.data} (process {plane.pid})" in second.stderr
        assert f"lockstep down --data {plane.data}" in second.stderr


def test_a_taken_port_is_named_with_the_way_out(plane: ControlPlane, tmp_path: Path) -> None:
    port = plane.ready_line.split()[1].rpartition(":")[2]
    second = plane.run("up", "--data", str(tmp_path / "data"), "--port", port)
    assert second.returncode == 1
    assert f"cannot listen on 127.0.0.1:{port}" in second.stderr
    assert "--port 0" in second.stderr


@pytest.mark.parametrize("part", PARTS)
def test_a_killed_part_is_started_again(plane: ControlPlane, part: str) -> None:
    before = plane.child(part)
    assert before is not None
    os.kill(before, signal.SIGKILL)
    eventually_sync(lambda: plane.child(part) not in (None, before), 60, f"{part} is back")
    eventually_sync(lambda: plane.run("list").returncode == 0, 60, "requests are answered")
    assert f"{part} ended (killed by SIGKILL)" in plane.said()


def test_down_ends_everything_and_up_goes_on_from_there(plane: ControlPlane) -> None:
    plane.ok("queue", "create", "kept")
    done = plane.run("down", "--data", str(plane.data))
    assert done.returncode == 0, done.stderr
    assert plane.process is not None
    assert plane.process.wait(5) == 0
    assert processes(plane.data) == []
    again = plane.run("list")
    assert again.returncode == 1
    assert "lockstep up" in again.stderr
    plane.start()
    assert plane.ok("queue", "list", "-o", "name").split() == ["queue/default", "queue/kept"]


def test_down_where_nothing_runs_says_so(tmp_path: Path) -> None:
    done = subprocess.run(
        [*LOCKSTEP, "down", "--data", str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")
    assert "does not run" in done.stderr


def test_nothing_outlives_a_killed_supervisor(tmp_path: Path) -> None:
    plane = ControlPlane(tmp_path / "data").start()
    # The supervisor is one more, simulated nodes one less.
    assert len(processes(plane.data)) == len(PARTS)
    plane.kill()
    eventually_sync(lambda: processes(plane.data) == [], 60, "all parts have ended")
    plane.start()
    assert plane.stop() == 0
    assert processes(plane.data) == []


def test_detached_it_returns_when_it_is_ready(tmp_path: Path) -> None:
    data, kubeconfig = tmp_path / "data", tmp_path / "elsewhere" / "kubeconfig"
    arguments = ("--data", str(data), "--port", "0", "--no-process-node")
    done = subprocess.run(
        [*LOCKSTEP, "up", *arguments, "--kubeconfig", str(kubeconfig), "--detach"],
        capture_output=True,
        text=True,
        timeout=stretched(60),
        check=False,
    )
    try:
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("ready https://127.0.0.1:")
        assert f"export KUBECONFIG={kubeconfig}" in done.stdout
        # The export line is enough for every command, also for the console's.
        exported = {**os.environ, "KUBECONFIG": str(kubeconfig), "HOME": str(tmp_path)}
        for command in (["status"], ["console", "--print"], ["cost"]):
            told = subprocess.run(
                [*LOCKSTEP, *command], env=exported, capture_output=True, text=True, check=False
            )
            assert told.returncode == 0, told.stderr
        assert stat.S_IMODE(kubeconfig.stat().st_mode) == 0o600
    finally:
        ended = subprocess.run([*LOCKSTEP, "down", "--data", str(data)], check=False)
    assert ended.returncode == 0
    assert processes(data) == []


def test_pods_end_with_down_and_jobs_continue_with_up(tmp_path: Path) -> None:
    plane = ControlPlane(tmp_path / "data").start()
    # The directory in its command is how the test finds the pod's process.
    code = f"import time; time.sleep(600)  # {tmp_path}"
    plane.ok("submit", "plain", "--name", "stays", "--", "python", "-c", code)
    plane.eventually_phase("stays", "Running")
    plane.ok("down", "--data", str(plane.data))
    assert processes(tmp_path) == []
    plane.start()
    eventually_sync(lambda: _pods(tmp_path), 90, "the pod runs again")
    plane.eventually_phase("stays", "Running")

    # A node that is killed leaves its pods running, and has them again when it is back.
    (before,) = _pods(tmp_path)
    node = plane.child("process-node")
    assert node is not None
    os.kill(node, signal.SIGKILL)
    eventually_sync(lambda: _readied(plane, "process-node") == 3, 60, "it is back")
    plane.eventually_phase("stays", "Running")
    assert _pods(tmp_path) == [before]

    plane.kill()
    eventually_sync(lambda: processes(tmp_path) == [], 90, "nothing runs without its supervisor")


def _pods(directory: Path) -> list[int]:
    return [pid for pid, command in processes(directory) if "time.sleep" in command]


def _readied(plane: ControlPlane, part: str) -> int:
    """Return how often a part has said that it is ready."""
    return (plane.data / "log" / f"{part}.log").read_text().count("ready")
