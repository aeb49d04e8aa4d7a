"""Commands reach a job's pods through the API server and kubelet: exec, cp, logs, port-forward."""

from __future__ import annotations

import re
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.on_cluster import OnCluster

JOB = "served"
SERVER = """
import http.server, pathlib, threading
pathlib.Path("/site/index.html").write_text("hello from the pod")
class Told(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *words): print("asked for", self.path, flush=True)
    def __init__(self, *words): super().__init__(*words, directory="/site")
print("begins", flush=True)
http.server.HTTPServer(("127.0.0.1", 8000), Told).serve_forever()
"""


@pytest.fixture
def served(cluster: OnCluster) -> Iterator[OnCluster]:
    """A job of one pod that serves a directory."""
    cluster.apply(_job(cluster.lockstep_image()))
    cluster.wait(lambda: "begins" in cluster.logs(f"{JOB}-worker-0"), 90, "the pod serves")
    yield cluster
    cluster.kubectl("delete", "trainingjobs.lockstep.dev", JOB)


def _job(image: str) -> dict[str, Any]:
    main = {
        "name": "main",
        "image": image,
        "command": ["python", "-c", SERVER],
        "volumeMounts": [{"name": "site", "mountPath": "/site"}],
    }
    pod = {
        "terminationGracePeriodSeconds": 0,
        "containers": [main],
        "volumes": [{"name": "site", "emptyDir": {}}],
    }
    role = {"name": "worker", "replicas": 1, "template": {"spec": pod}}
    return {
        "apiVersion": "lockstep.dev/v1alpha1",
        "kind": "TrainingJob",
        "metadata": {"name": JOB},
        "spec": {"framework": "plain", "launcher": "None", "roles": [role]},
    }


def test_exec_runs_in_the_pod_and_gives_its_exit_code(served: OnCluster) -> None:
    done = served.lockstep("exec", JOB, "--", "sh", "-c", "cat /site/index.html; exit 7")
    assert (done.stdout, done.returncode) == ("hello from the pod", 7)


def test_cp_brings_a_file_in_and_out(served: OnCluster, tmp_path: Path) -> None:
    ours, back = tmp_path / "ours.bin", tmp_path / "back.bin"
    ours.write_bytes(bytes(range(256)) * 4096)
    assert served.lockstep("cp", str(ours), f"{JOB}:/site/theirs.bin").returncode == 0
    assert served.lockstep("cp", f"{JOB}:/site/theirs.bin", str(back)).returncode == 0
    assert back.read_bytes() == ours.read_bytes()


def test_forwarded_port_answers_and_logs_follow(served: OnCluster) -> None:
    with (
        served.running("logs", JOB, "--follow") as follows,
        served.running("port-forward", JOB, "0:8000") as forwards,
    ):
        port = _port(forwards)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/index.html", timeout=10) as answer:
            assert answer.read() == b"hello from the pod"
        assert follows.stdout is not None
        told = iter(follows.stdout.readline, "")
        assert any("asked for /index.html" in line for line in told)


def _port(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    for line in iter(process.stdout.readline, ""):
        if found := re.search(r"127\.0\.0\.1:(\d+)", line):
            return found[1]
    raise AssertionError("port-forward ended without a port")
