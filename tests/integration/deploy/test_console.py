"""The console as the manifest starts it, with the account that it has on a cluster."""

from __future__ import annotations

import http.client
import json
import os
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.apiserver import ApiServer
from tests.support.console import MARK, account, apply, token
from tests.support.control_plane import LOCKSTEP
from tests.support.kube_apiserver import KubeApiServer, free_ports
from tests.support.waiting import eventually_sync, stretched
from tools.deploy.generate import MANIFEST

from lockstep.api import creator_policy
from lockstep.api.names import API_VERSION, CREATOR_ANNOTATION, CREATOR_GROUPS_ANNOTATION

JOBS = f"/apis/{API_VERSION}/namespaces/default/trainingjobs"
UNCHECKED = ssl.create_default_context()
UNCHECKED.check_hostname = False
UNCHECKED.verify_mode = ssl.CERT_NONE


def job(name: str) -> dict[str, Any]:
    template = {"spec": {"containers": [{"name": "main", "image": "none", "command": ["true"]}]}}
    return {
        "apiVersion": API_VERSION,
        "kind": "TrainingJob",
        "metadata": {"namespace": "default", "name": name},
        "spec": {"framework": "plain", "roles": [{"name": "worker", "template": template}]},
    }


def arguments(port: int, state: Path) -> list[str]:
    """Return the arguments of the Deployment, at another port and in another directory."""
    objects = yaml.safe_load_all(MANIFEST.read_text())
    deployment = next(
        o
        for o in objects
        if (o["kind"], o["metadata"]["name"]) == ("Deployment", "lockstep-console")
    )
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    given = [one.replace("7490", str(port)) for one in container["args"]]
    return [one.replace("/tmp/console", str(state)) for one in given]  # noqa: S108  the pod's


@pytest.fixture
def console(any_server: ApiServer, tmp_path: Path) -> Iterator[int]:
    (port,) = free_ports(1)
    kubeconfig = account(any_server)
    process = subprocess.Popen(
        [*LOCKSTEP, *arguments(port, tmp_path / "state"), "--leashed"],
        env={**os.environ, "KUBECONFIG": str(kubeconfig)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == f"ready https://0.0.0.0:{port}\n"
    yield port
    process.terminate()
    process.wait(30)


def ask(port: int, method: str, path: str, body: Any = None, cookie: str = "") -> Any:
    connection = http.client.HTTPSConnection(
        "localhost", port, timeout=stretched(60), context=UNCHECKED
    )
    sent = None if body is None else json.dumps(body)
    connection.request(method, path, sent, {**MARK, "Cookie": cookie})
    response = connection.getresponse()
    text = response.read()
    connection.close()
    return response.status, dict(response.headers), text


def test_a_user_signs_in_over_tls_and_sees_jobs(any_server: ApiServer, console: int) -> None:
    assert ask(console, "GET", "/healthz")[0] == 200
    person = {"name": "ana", "namespace": "default"}
    apply(any_server, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": person})
    rule = {"apiGroups": ["lockstep.dev"], "resources": ["trainingjobs"], "verbs": ["list"]}
    rbac = "rbac.authorization.k8s.io"
    meta = {"name": "sees-jobs", "namespace": "default"}
    role = {"apiVersion": f"{rbac}/v1", "kind": "Role", "metadata": meta}
    apply(any_server, {**role, "rules": [rule]})
    of = {"apiGroup": rbac, "kind": "Role", "name": "sees-jobs"}
    subject = {"kind": "ServiceAccount", **person}
    binding = {**role, "kind": "RoleBinding", "roleRef": of, "subjects": [subject]}
    apply(any_server, binding)
    assert any_server.request("POST", JOBS, job("shown")).status in (201, 409)

    given = {"token": token(any_server, "default", "ana")}
    status, headers, text = ask(console, "POST", "/api/session", given)
    assert status == 200, text
    cookie = headers["Set-Cookie"]
    assert cookie.startswith("__Host-lockstep=")
    assert "Secure" in cookie

    def names() -> list[str]:
        status, _, text = ask(console, "GET", "/api/jobs", cookie=cookie.partition(";")[0])
        assert status == 200, text
        return [row["name"] for row in json.loads(text)["items"]]

    eventually_sync(lambda: "shown" in names(), what="the job is listed")
    # Nodes are read by the console's own account, and are not this user's to see.
    assert ask(console, "GET", "/api/csv/nodes", cookie=cookie.partition(";")[0])[0] == 403


POLICIES = "/apis/admissionregistration.k8s.io/v1"
PLURALS = ("mutatingadmissionpolicies", "mutatingadmissionpolicybindings")


@pytest.fixture
def policy(any_server: ApiServer) -> Iterator[None]:
    """The policy on a cluster; the embedded server does the same by itself."""
    if isinstance(any_server, KubeApiServer):
        for plural, obj in zip(PLURALS, creator_policy.objects(), strict=True):
            made = any_server.request("POST", f"{POLICIES}/{plural}", obj)
            assert made.status == 201, made.body
    yield
    if isinstance(any_server, KubeApiServer):
        for plural in reversed(PLURALS):
            any_server.request("DELETE", f"{POLICIES}/{plural}/{creator_policy.NAME}")


PODS = "/api/v1/namespaces/default/pods"


@pytest.mark.usefixtures("policy")
def test_a_cluster_writes_down_who_created_a_job(any_server: ApiServer) -> None:
    account(any_server)
    ana = {"Impersonate-User": "ana", "Impersonate-Group": "system:masters"}

    def created() -> bool:
        any_server.request("DELETE", f"{JOBS}/whose")
        made = any_server.request("POST", JOBS, job("whose"), headers=ana)
        assert made.status == 201, made.body
        return signed(made.json)[0] == "ana"

    eventually_sync(created, what="the policy is at work")
    stolen = {CREATOR_ANNOTATION: "ben", CREATOR_GROUPS_ANNOTATION: "night", "own": "x"}
    kind = "application/merge-patch+json"
    body = json.dumps({"metadata": {"annotations": stolen}}).encode()
    changed = any_server.request("PATCH", f"{JOBS}/whose", body, content_type=kind)
    assert changed.status == 200, changed.body
    assert signed(changed.json) == ("ana", {"system:masters", "system:authenticated"}, "x")
    any_server.request("DELETE", f"{JOBS}/whose")

    meta = {"name": "alone", "annotations": stolen}
    spec = {"containers": [{"name": "main", "image": "none"}], "schedulerName": "lockstep"}
    alone = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
    made = any_server.request("POST", PODS, alone, headers=ana)
    assert made.status == 201, made.body
    assert signed(made.json) == ("ana", {"system:masters", "system:authenticated"}, "x")
    body = json.dumps({"metadata": {"annotations": {CREATOR_ANNOTATION: None}}}).encode()
    changed = any_server.request("PATCH", f"{PODS}/alone", body, content_type=kind)
    assert signed(changed.json)[0] == "ana"
    any_server.request("DELETE", f"{PODS}/alone?gracePeriodSeconds=0")


def signed(obj: dict[str, Any]) -> tuple[str, set[str], str]:
    """Return the user and the groups that an object is told to be of, and a note of its own."""
    said = obj["metadata"].get("annotations") or {}
    groups = set(said.get(CREATOR_GROUPS_ANNOTATION, "").split("\n"))
    return said.get(CREATOR_ANNOTATION, ""), groups, said.get("own", "")
