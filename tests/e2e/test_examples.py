"""Every example, as its reader would run it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.support.control_plane import ControlPlane
from tests.support.waiting import eventually_sync, stretched

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    running = ControlPlane(
        tmp_path_factory.mktemp("examples") / "data",
        *("--simulate", "64x8,nodes-per-leaf=8,leaves-per-spine=4"),
    ).start()
    yield running
    running.stop()


def domains(plane: ControlPlane, selector: str, label: str) -> set[str]:
    """Return the values of a node label under the pods that match."""
    pods = yaml.safe_load(plane.ok("list", "pods", "-l", selector, "-o", "yaml"))["items"]
    nodes = yaml.safe_load(plane.ok("node", "list", "-o", "yaml"))["items"]
    labels = {node["metadata"]["name"]: node["metadata"]["labels"] for node in nodes}
    return {labels[pod["spec"]["nodeName"]][label] for pod in pods}


def test_the_pair_starts_under_one_leaf(plane: ControlPlane) -> None:
    plane.ok("submit", "-f", str(EXAMPLES / "gangs" / "gang.yaml"))
    plane.eventually_phase("gang/pair", "Running")
    assert len(domains(plane, "lockstep.dev/gang=pair", "leaf")) == 1
    plane.ok("delete", "gang/pair", "pod/pair-0", "pod/pair-1")


def test_the_large_job_starts_under_one_spine(plane: ControlPlane) -> None:
    plane.ok("submit", "-f", str(EXAMPLES / "gangs" / "large.yaml"))
    plane.eventually_phase("large", "Running")
    assert len(domains(plane, "lockstep.dev/job=large", "spine")) == 1
    assert "256 of 512 GPUs used (50 %)" in plane.ok("top")
    plane.ok("delete", "large")
    eventually_sync(lambda: "0 of 512 GPUs used" in plane.ok("top"), 60, "its GPUs are free")


@pytest.mark.torch
def test_the_digits_job_learns(plane: ControlPlane) -> None:
    pytest.importorskip("torch")
    job = yaml.safe_load((EXAMPLES / "digits" / "job.yaml").read_text())
    main = job["spec"]["roles"][0]["template"]["spec"]["containers"][0]
    main["workingDir"] = str(EXAMPLES / "digits")
    main["command"] = ["python", "train.py", "--steps", "200"]
    done = plane.run("submit", "-f", "-", "--follow", stdin=yaml.safe_dump(job), timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "[worker-1] rank 1 of 2 starts at step 0" in done.stdout
    accuracy = float(done.stdout.split("test accuracy ")[1].split()[0])
    assert accuracy >= 0.95


def test_the_quick_start(tmp_path: Path) -> None:
    scripts = Path(sys.executable).parent
    done = subprocess.run(
        [EXAMPLES / "quickstart" / "quickstart.sh"],
        env={
            **os.environ,
            "PATH": f"{scripts}:{os.environ['PATH']}",
            "DATA": str(tmp_path / "data"),
            "PORT": "0",
        },
        capture_output=True,
        text=True,
        timeout=stretched(240),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "hello from hello-worker-1" in done.stdout
    assert "job/large created" in done.stdout
    assert "needs 33 pods x 8 GPUs under one spine" in done.stdout
    assert done.stderr.splitlines()[-1] == "stopped"
