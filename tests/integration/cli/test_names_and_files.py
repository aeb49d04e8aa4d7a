"""Names that the shell completes, files of objects to delete, and events on a job's page."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.apiserver import ApiServer
from tests.support.control_plane import LOCKSTEP
from tests.support.waiting import stretched
from tools.deploy.generate import CHART

LOCKSTEP_API = "/apis/lockstep.dev/v1alpha1"
POD = {"spec": {"containers": [{"name": "main", "command": ["true"]}]}}


def job(name: str) -> dict[str, Any]:
    roles = [{"name": "worker", "template": POD}]
    return {
        "apiVersion": "lockstep.dev/v1alpha1",
        "kind": "TrainingJob",
        "metadata": {"name": name},
        "spec": {"framework": "plain", "roles": roles},
    }


def queue(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "lockstep.dev/v1alpha1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {},
    }


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A server with our kinds, two jobs and a queue, and nothing that works on them."""
    running = ApiServer(tmp_path_factory.mktemp("cluster")).start()
    for crd in yaml.safe_load_all((CHART / "files" / "crds.yaml").read_text()):
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        assert running.request("POST", path, crd).status == 201
    jobs = f"{LOCKSTEP_API}/namespaces/default/trainingjobs"
    for name in ("digits", "dust"):
        assert running.request("POST", jobs, job(name)).status == 201
    assert running.request("POST", f"{LOCKSTEP_API}/queues", queue("research")).status == 201
    yield running
    running.kill()


def lockstep(server: ApiServer, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*LOCKSTEP, *args],
        env={**os.environ, "KUBECONFIG": str(server.kubeconfig), **env},
        capture_output=True,
        text=True,
        timeout=stretched(60),
        check=False,
    )


def completed(server: ApiServer, *words: str) -> list[str]:
    """Return what the shell offers for the last of *words*."""
    done = lockstep(
        server,
        _LOCKSTEP_COMPLETE="complete_bash",
        COMP_WORDS=" ".join(("lockstep", *words)),
        COMP_CWORD=str(len(words)),
    )
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("logs", "di"), ["digits"]),
        (("delete", "job/d"), ["job/digits", "job/dust"]),
        (("suspend", "d"), ["digits", "dust"]),
        (("describe", "queue/"), ["queue/research"]),
        (("queue", "delete", "re"), ["research"]),
        (("submit", "plain", "--queue", "r"), ["research"]),
        (("-n", "elsewhere", "logs", "d"), []),
        (("logs", "nokind/d"), []),
    ],
)
def test_the_shell_completes_names(
    server: ApiServer, words: tuple[str, ...], offered: list[str]
) -> None:
    assert completed(server, *words) == offered


def test_a_file_is_deleted_but_for_what_is_missing(server: ApiServer, tmp_path: Path) -> None:
    file = tmp_path / "both.yaml"
    file.write_text(yaml.safe_dump_all([queue("brief"), job("brief")]))
    assert lockstep(server, "submit", "-f", str(file)).returncode == 0
    assert lockstep(server, "delete", "queue/brief").returncode == 0
    done = lockstep(server, "delete", "-f", str(file))
    assert (done.returncode, done.stdout) == (1, "job/brief deleted\n")
    assert "not found: queue/brief" in done.stderr
    again = lockstep(server, "delete", "-f", str(file), "--ignore-not-found")
    assert (again.returncode, again.stdout) == (0, "")


def test_a_jobs_page_has_the_events_of_its_gang(server: ApiServer) -> None:
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    for name, when in (("before", "2020-01-01T00:00:00Z"), ("lately", now)):
        event = {
            "metadata": {"name": name},
            "involvedObject": {"kind": "Gang", "name": "digits", "namespace": "default"},
            "reason": "Preempted",
            "message": f"{name}: its place goes to gang default/other",
            "firstTimestamp": when,
            "lastTimestamp": when,
        }
        path = "/api/v1/namespaces/default/events"
        assert server.request("POST", path, event).status == 201
    page = lockstep(server, "describe", "digits").stdout
    assert "lately: its place goes to gang default/other" in page
    assert "before" not in page  # of an earlier job of that name
