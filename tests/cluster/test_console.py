"""The console through its Service: a member signs in, and sees the jobs of its namespace alone."""

from __future__ import annotations

import http.client
import json
import re
import ssl
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.console import MARK
from tests.support.on_cluster import OnCluster
from tools.cluster import programs

from lockstep.api.names import API_VERSION, SYSTEM_NAMESPACE

HOST = "localhost:7490"
"""The console answers under the addresses that the chart's values name."""
UNCHECKED = ssl.create_default_context()
UNCHECKED.check_hostname = False
UNCHECKED.verify_mode = ssl.CERT_NONE


@pytest.fixture
def console(cluster: OnCluster) -> Iterator[int]:
    """The port of this machine that leads to the console's Service."""
    kubectl = [str(programs.kubernetes("kubectl")), f"--kubeconfig={cluster.cluster.kubeconfig}"]
    words = ["-n", SYSTEM_NAMESPACE, "port-forward", "service/lockstep-console", ":443"]
    with subprocess.Popen([*kubectl, *words], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        found = re.search(r"127\.0\.0\.1:(\d+)", process.stdout.readline())
        assert found, "kubectl port-forward ended"
        yield int(found[1])
        process.kill()


def ask(port: int, method: str, path: str, body: Any = None, cookie: str = "") -> Any:
    connection = http.client.HTTPSConnection("localhost", port, timeout=60, context=UNCHECKED)
    sent = None if body is None else json.dumps(body)
    connection.request(method, path, sent, {**MARK, "Host": HOST, "Cookie": cookie})
    response = connection.getresponse()
    text = response.read()
    connection.close()
    return response.status, response.headers, text


def member(cluster: OnCluster) -> str:
    """Return the token of an account that edits the story's namespace."""
    rbac = "rbac.authorization.k8s.io"
    subject = {"kind": "ServiceAccount", "name": "ana", "namespace": cluster.space}
    cluster.apply(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "ana"}},
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "ana"},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "edit"},
            "subjects": [subject],
        },
    )
    return cluster.kubectl("create", "token", "ana").strip()


def test_member_sees_own_jobs_through_the_service(cluster: OnCluster, console: int) -> None:
    submit = ("submit", "plain", "--name", "shown", "--no-launcher", "--image")
    assert cluster.lockstep(*submit, cluster.lockstep_image(), "--", "true").returncode == 0
    assert ask(console, "GET", "/")[0] == 200
    assert ask(console, "GET", "/api/jobs")[0] == 401
    status, headers, text = ask(console, "POST", "/api/session", {"token": member(cluster)})
    assert status == 200, text
    cookie = headers["Set-Cookie"].partition(";")[0]

    def seen() -> set[tuple[str, str]]:
        status, _, text = ask(console, "GET", "/api/jobs", cookie=cookie)
        assert status == 200, text
        return {(row["namespace"], row["name"]) for row in json.loads(text)["items"]}

    assert cluster.wait(seen, 60, "a list of jobs") == {(cluster.space, "shown")}
    meta = {"namespace": "default", "name": "elsewhere"}
    made = {"apiVersion": API_VERSION, "kind": "TrainingJob", "metadata": meta}
    status, _, text = ask(console, "POST", "/api/objects", {"object": made}, cookie)
    assert (status, b"forbidden" in text) == (403, True), text
