"""Loops in loops, conditions in loops, nested pipelines: held against ``kfp.local`` in one run."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from tests.support.pipelines import KFP, Pipelines
from tests.support.waiting import eventually_sync
from tools.kfp import build


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_everyday_pipelines_end_as_kfp_local_says(world: Pipelines, tmp_path: Path) -> None:
    made = build.find()
    assert made is not None
    command = [str(made / "bin" / "python"), "-W", "ignore", str(KFP / "everyday.py")]
    path = f"{made / 'bin'}:{os.environ['PATH']}"
    subprocess.run(
        [*command, str(tmp_path)], check=True, capture_output=True, env=os.environ | {"PATH": path}
    )
    told = json.loads((tmp_path / "ends.json").read_text())
    for name in told["ends"]:
        given = told["needs"].get(name, {}).items()
        values = [word for key, value in given for word in ("-p", f"{key}={json.dumps(value)}")]
        file = str(tmp_path / f"{name}.yaml")
        world.plane.ok("pipeline", "run", file, "--name", name, *values)

    def ended() -> bool:
        return all(world.status(name).get("completionTime") for name in told["ends"])

    eventually_sync(ended, 600, "every run is over")
    found = {name: world.status(name) for name in told["ends"]}
    assert {name: one.get("outputs") for name, one in found.items()} == told["ends"], found
