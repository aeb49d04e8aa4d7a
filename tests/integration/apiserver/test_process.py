"""The server as a process: starting, ending, and who may have its files."""

from __future__ import annotations

import stat
import subprocess
import sys

from tests.support.apiserver import ApiServer
from tests.support.waiting import stretched

NAMESPACES = ["default", "kube-node-lease", "kube-public", "kube-system"]


def test_default_namespaces_exist(server: ApiServer) -> None:
    names = [
        n["metadata"]["name"] for n in server.request("GET", "/api/v1/namespaces").json["items"]
    ]
    assert names == NAMESPACES


def test_sigterm_ends_it_cleanly_and_a_restart_resumes(server: ApiServer) -> None:
    before = server.request("GET", "/api/v1/namespaces").json
    assert server.stop() == 0
    server.start()
    assert server.request("GET", "/api/v1/namespaces").json["items"] == before["items"]


def test_private_files_are_for_their_owner_alone(server: ApiServer) -> None:
    private = [
        server.kubeconfig,
        *server.data.glob("kubeconfigs/*"),
        *server.data.glob("pki/*.key"),
        *server.data.glob("store.db*"),
    ]
    assert len(private) > 7
    assert {stat.S_IMODE(path.stat().st_mode) for path in private} == {0o600}


def test_a_second_server_on_the_same_directory_is_refused(server: ApiServer) -> None:
    command = [sys.executable, "-m", "lockstep", "apiserver", "--data", str(server.data)]
    second = subprocess.run(
        [*command, "--port", "0"],
        capture_output=True,
        text=True,
        timeout=stretched(30),
        check=False,
    )
    assert second.returncode != 0
    assert "in use by another API server" in second.stderr
