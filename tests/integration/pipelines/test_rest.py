"""The real kfp client against the REST face."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest
from tests.support.pipelines import KFP, Pipelines
from tests.support.waiting import stretched
from tools.kfp import build


@pytest.fixture(scope="module")
def host(world: Pipelines) -> Iterator[str]:
    """Where the REST face answers."""
    command = [sys.executable, "-P", "-m", "lockstep", "pipeline", "serve", "--port", "0"]
    command += ["--root", "s3://runs/rest", "--storage-secret", "store"]
    env = {**os.environ, "KUBECONFIG": str(world.plane.kubeconfig)}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env)
    assert process.stdout is not None
    yield process.stdout.readline().split()[1]
    process.terminate()
    process.wait(20)


def test_the_kfp_client_starts_a_run_and_waits_for_it(world: Pipelines, host: str) -> None:
    made = build.find()
    assert made is not None
    command = [str(made / "bin" / "python"), "-W", "ignore", str(KFP / "client.py"), host]
    command += [str(KFP / "squares.yaml"), json.dumps({"rows": 4})]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=stretched(120), check=False
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["state"] == "SUCCEEDED"
    assert said["tasks"] == {"main": "SUCCEEDED", "make": "SUCCEEDED", "total": "SUCCEEDED"}
    assert said["id"] in said["listed"]
    assert world.status(said["id"])["outputs"] == {"Output": 14}


def test_the_kfp_client_keeps_pipelines_and_lets_them_recur(world: Pipelines, host: str) -> None:
    made = build.find()
    assert made is not None
    command = [str(made / "bin" / "python"), "-W", "ignore", str(KFP / "kept.py"), host]
    command += [str(KFP / "squares.yaml"), json.dumps({"rows": 3})]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=stretched(180), check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == {
        "found": True,
        "versions": ["second", "v1"],
        "state": "SUCCEEDED",
        "recurred": True,
        "mode": "DISABLE",
        "left": 0,
    }


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/apis/v2beta1/healthz", {}, 200),
        ("/apis/v2beta1/healthz", {"Host": "evil.example:80"}, 403),
        ("/apis/v2beta1/healthz", {"Origin": "http://evil.example"}, 403),
        ("/apis/v2beta1/runs/nope", {}, 404),
        ("/apis/v2beta1/pipelines", {}, 200),
        ("/apis/v2beta1/tasks", {}, 501),
    ],
)
def test_only_programs_of_this_machine_are_answered(
    host: str, path: str, headers: dict[str, str], status: int
) -> None:
    request = urllib.request.Request(host + path, headers=headers)  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310
            found = answer.status
    except urllib.error.HTTPError as error:
        found = error.code
    assert found == status
