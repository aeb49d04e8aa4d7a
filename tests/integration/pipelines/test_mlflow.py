"""MLflow's real client against ``pipeline serve``: runs, and model versions out of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.control_plane import ControlPlane
from tests.support.waiting import stretched
from tools.kfp import build

CLIENT = Path(__file__).parents[2] / "support" / "mlflow" / "log_and_fetch.py"
VERSIONS = "apis/lockstep.dev/v1alpha1/namespaces/default/modelversions"


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[ControlPlane]:
    made = ControlPlane(tmp_path / "up", "--no-process-node").start()
    yield made
    made.stop()


@pytest.fixture
def host(plane: ControlPlane, tmp_path: Path) -> Iterator[str]:
    command = [sys.executable, "-P", "-m", "lockstep", "pipeline", "serve", "--port", "0"]
    env = {**os.environ, "KUBECONFIG": str(plane.kubeconfig)}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=env, cwd=tmp_path
    ) as process:
        assert process.stdout is not None
        yield process.stdout.readline().split()[1]
        process.terminate()


@pytest.mark.timeout(300)
def test_a_logged_model_is_a_model_version(plane: ControlPlane, host: str, tmp_path: Path) -> None:
    made = build.find()
    if made is None:
        pytest.skip("no environment with the kfp SDK: run `make kfp`")
    command = [str(made / "bin" / "python"), "-W", "ignore", str(CLIENT), host]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=stretched(120), check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    missing = told.pop("missing")
    assert told == {
        "params": {"rate": "0.1", "odd/name": "x y"},
        "metrics": {"accuracy": 0.75},
        "team": "vision",
        "status": "FINISHED",
        "versions": ["1", "2"],
        "best": "1",
        "searched": ["2", "1"],
        "weights": "0110",
    }
    assert "versions of digits are 2, 1" in missing
    items = plane.read(VERSIONS)["items"]
    specs = {one["metadata"]["name"]: one["spec"] for one in items}
    assert specs["digits-1"]["stage"] == "Production"
    assert specs["digits-1"]["metrics"] == {"accuracy": 0.75}
    assert specs["digits-1"]["data"] == ["lockstep://default/images"]
