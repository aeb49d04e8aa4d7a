"""A place to work in by one command: its packages, its shell, its kernels."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import time
import uuid
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.support.apiserver import Answer, ApiServer
from tests.support.console import Visitor, apply, token
from tests.support.control_plane import ControlPlane
from tests.support.door import of_link
from tests.support.waiting import eventually_sync, stretched

pytest.importorskip("jupyterlab", reason="needs JupyterLab")
pytest.importorskip("asyncssh", reason="needs the notebooks extra")
websocket = pytest.importorskip("websocket", reason="needs websocket-client")

KERNELS = "apis/lockstep.dev/v1alpha1/namespaces/default/kernels"
PODS = "api/v1/namespaces/default/pods"
OUT_WITHIN = 10.0
"""Seconds within which a member who is removed is out."""
NOTEBOOK = "apis/kubeflow.org/v1/namespaces/default/notebooks/tensorboard"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a lock of one package, which lies beside it."""
    place = tmp_path_factory.mktemp("project")
    wheel = place / "answer-1.0-py3-none-any.whl"
    about = "Metadata-Version: 2.1\nName: answer\nVersion: 1.0\n"
    how = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    with zipfile.ZipFile(wheel, "w") as made:
        made.writestr("answer.py", "VALUE = 42\n")
        made.writestr("answer-1.0.dist-info/METADATA", about)
        made.writestr("answer-1.0.dist-info/WHEEL", how)
        made.writestr("answer-1.0.dist-info/RECORD", "")
    (place / "lock.txt").write_text(f"# made by hand\nanswer @ file://{wheel}\n")
    return place


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    place = tmp_path_factory.mktemp("plane")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(place / "cache"))
        patch.setenv("XDG_CONFIG_HOME", str(place / "config"))
        running = ControlPlane(place / "cluster").start()
        yield running
        running.stop()


@pytest.fixture(scope="module")
def gateway(plane: ControlPlane, project: Path) -> str:
    """Where the gateway answers; a place is up."""
    lock = str(project / "lock.txt")
    done = plane.run("dev", "up", "ana", "--packages", lock, "--home", str(project), timeout=120)
    assert done.returncode == 0, done.stderr
    said = (plane.data / "log/gateway.log").read_text().splitlines()
    return [line.split()[1] for line in said if line.startswith("ready ")][-1]


def ssh(plane: ControlPlane, *command: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    if shutil.which("ssh") is None:
        pytest.skip("no OpenSSH client on PATH")
    return plane.run("ssh", "ana", "--", *command, stdin=stdin)


def test_place_is_listed_as_ready(plane: ControlPlane, gateway: str) -> None:
    assert "ana  Ready" in plane.ok("dev", "list")


def test_ssh_passes_input_output_and_exit_code(
    plane: ControlPlane, gateway: str, project: Path
) -> None:
    done = ssh(plane, "sh", "-c", "pwd; cat; exit 3", stdin="said\n")
    assert (done.stdout, done.returncode) == (f"{project}\nsaid\n", 3), done.stderr


def test_lock_without_exact_versions_is_refused(plane: ControlPlane, project: Path) -> None:
    (project / "loose.txt").write_text("numpy\n")
    done = plane.run("dev", "up", "ben", "--packages", str(project / "loose.txt"))
    assert done.returncode == 2
    assert "'numpy' has no exact version" in done.stderr


def test_kernel_has_the_packages_of_its_lock(plane: ControlPlane, gateway: str) -> None:
    base = gateway
    head = [f"Authorization: Bearer {server_token(plane)}"]
    body = json.dumps({"name": "ana"})
    posted = subprocess.run(
        ["curl", "-sS", "-H", head[0], "-d", body, f"{base}/api/kernels"],
        capture_output=True,
        text=True,
        check=True,
    )
    number = json.loads(posted.stdout)["id"]
    url = f"{base.replace('http', 'ws')}/api/kernels/{number}/channels"
    client = websocket.create_connection(url, header=head, timeout=stretched(90))
    header = {"msg_id": uuid.uuid4().hex, "msg_type": "execute_request", "session": "s"}
    code = "import answer, sys; print(answer.VALUE, sys.prefix)"
    content = {"code": code, "silent": False, "store_history": True, "allow_stdin": False}
    message = {"channel": "shell", "header": header, "parent_header": {}, "metadata": {}}
    client.send(json.dumps({**message, "content": content}))
    said = ""
    while not said.startswith("42 "):
        told = json.loads(client.recv())
        assert told["msg_type"] != "error", told["content"]
        said = told["content"].get("text", said) if told["msg_type"] == "stream" else said
    client.close()
    assert "/environments/default/" in said
    assert plane.read(f"{KERNELS}/{number}")["spec"]["notebook"] == "ana"


def test_link_opens_jupyter_once_and_shows_no_token(plane: ControlPlane, gateway: str) -> None:
    link = plane.ok("dev", "open", "ana", "--print").strip()
    page = of_link(link)
    shown = page.get("/notebook/default/ana/lab")
    assert (shown.status, b"JupyterLab" in shown.body) == (200, True)
    assert page_token(plane) not in page.url + link
    assert page.enter().status == 403
    again = Visitor(link).request("POST", "/api/session", {"code": link.rpartition("=")[2]})
    assert again.status == 403


def test_stranger_gets_no_kernel_and_no_page(plane: ControlPlane, gateway: str) -> None:
    page, good = page_token(plane), f"Authorization: Bearer {server_token(plane)}"
    wrong = f"{'0' if page[0] != '0' else '1'}{page[1:]}"
    for path, header, status in (
        ("/api/kernels", "X-None: 1", "401"),
        ("/api/kernels", f"Authorization: Bearer default/ana/0/{wrong}", "401"),
        ("/api/kernels", f"Authorization: Bearer default/ana/0/{page}", "401"),
        ("/api/kernels", good, "200"),
        ("/api/kernels", f"{good}\r\nOrigin: http://evil.example", "403"),
        ("/api/kernels", f"{good}\r\nOrigin: http://127.0.0.1:1", "403"),
        ("/api/kernels", f"{good}\r\nOrigin: null", "403"),
        ("/api/kernels", f"{good}\r\nSec-Fetch-Site: same-site", "403"),
        ("/api/kernels", f"{good}\r\nSec-Fetch-Site: none", "403"),
        ("/notebook/default/ana/lab", "X-None: 1", "404"),
        (f"/notebook/default/ana/lab?lockstep-token={page}", "X-None: 1", "404"),
    ):
        done = subprocess.run(
            ["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", "-H", header, gateway + path],
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout == status, (path, header)


def test_code_opens_the_channels_of_one_kernel_once(plane: ControlPlane, gateway: str) -> None:
    def post(path: str, body: dict[str, Any]) -> dict[str, Any]:
        head = f"Authorization: Bearer {server_token(plane)}"
        command = ["curl", "-sS", "-H", head, "-d", json.dumps(body), gateway + path]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return dict(json.loads(done.stdout))

    mine, other = (f"k{uuid.uuid4().hex[:8]}" for _ in range(2))
    post("/api/kernels", {"name": "python3", "env": {"KERNEL_ID": mine}})
    first, second = (post("/api/codes", {"kernel": mine})["code"] for _ in range(2))
    at = f"{gateway.replace('http', 'ws')}/code"
    with pytest.raises(websocket.WebSocketBadStatusException, match="401"):
        websocket.create_connection(f"{at}/{first}/api/kernels/{other}/channels")
    websocket.create_connection(f"{at}/{second}/api/kernels/{mine}/channels").close()
    for used in (first, second, "x" * 43):
        with pytest.raises(websocket.WebSocketBadStatusException, match="401"):
            websocket.create_connection(f"{at}/{used}/api/kernels/{mine}/channels")


def test_channels_of_a_removed_member_are_cut_in_time(plane: ControlPlane, gateway: str) -> None:
    server = api(plane)
    meta = {"name": "kernel-user", "namespace": "default"}
    rbac = "rbac.authorization.k8s.io"
    rule = {"apiGroups": ["lockstep.dev"], "resources": ["kernels"], "verbs": ["create"]}
    subject = {"kind": "ServiceAccount", **meta}
    of = {"apiGroup": rbac, "kind": "Role", "name": meta["name"]}
    role: dict[str, Any] = {"apiVersion": f"{rbac}/v1", "metadata": meta}
    for obj in (
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta},
        {**role, "kind": "Role", "rules": [rule]},
        {**role, "kind": "RoleBinding", "roleRef": of, "subjects": [subject]},
    ):
        apply(server, obj)
    head = f"Authorization: Bearer {token(server, 'default', meta['name'])}"
    number = f"k{uuid.uuid4().hex[:8]}"
    body = json.dumps({"name": "python3", "env": {"KERNEL_ID": number}})

    def status(*words: str) -> str:
        command = ["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", "-H", head, *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    assert status("-d", body, f"{gateway}/api/kernels") == "201"
    url = f"{gateway.replace('http', 'ws')}/api/kernels/{number}/channels"
    client = websocket.create_connection(url, header=[head], timeout=stretched(90))
    binding = f"/apis/{rbac}/v1/namespaces/default/rolebindings/{meta['name']}"
    assert server.request("DELETE", binding).status == 200
    since = time.monotonic()
    client.settimeout(OUT_WITHIN)
    while client.connected and time.monotonic() - since < OUT_WITHIN:
        with suppress(websocket.WebSocketException, OSError):
            client.recv()
    assert (client.connected, time.monotonic() - since < OUT_WITHIN) == (False, True)
    assert status(f"{gateway}/api/kernels/{number}") == "403"
    with pytest.raises(websocket.WebSocketBadStatusException, match="403"):
        websocket.create_connection(url, header=[head])
    path = f"/{KERNELS}/{number}"
    assert server.request("DELETE", path).status == 200


def test_notebook_and_command_run_as_jobs_in_its_environment(
    plane: ControlPlane, gateway: str, project: Path
) -> None:
    cell = {"cell_type": "code", "execution_count": None, "id": "a", "metadata": {}, "outputs": []}
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python", "language": "python"}}
    body = {"cells": [{**cell, "source": "6 * 7"}], "nbformat": 4, "nbformat_minor": 5}
    (project / "sums.ipynb").write_text(json.dumps({**body, "metadata": kernel}))
    plane.ok("dev", "job", "ana", "sums.ipynb", "--name", "sums")
    code = "import answer, os; print(answer.VALUE, os.getcwd())"
    plane.ok("dev", "job", "ana", "--name", "said", "--", "python", "-c", code)
    done = plane.run("wait", "sums", "said", timeout=120)
    assert done.returncode == 0, done.stderr
    (made,) = json.loads((project / "sums.ipynb").read_text())["cells"]
    assert "42" in json.dumps(made["outputs"])
    assert f"42 {project}" in plane.ok("logs", "said")
    taken = plane.run("dev", "job", "ana", "--name", "said", "--", "true")
    assert (taken.returncode, "exists" in taken.stderr) == (2, True)
    plane.ok("delete", "sums", "said")


def test_a_job_of_a_place_takes_code_along(
    plane: ControlPlane, gateway: str, project: Path, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text("import mine, os; print(mine.VALUE, os.getcwd())")
    (tmp_path / "mine.py").write_text("VALUE = 7")
    given = ("--name", "carried", "--code", str(tmp_path), "--", "python", "train.py")
    plane.ok("dev", "job", "ana", *given)
    done = plane.run("wait", "carried", timeout=120)
    assert done.returncode == 0, done.stderr
    assert "7 /lockstep/code" in plane.ok("logs", "carried")
    assert "code-" in plane.ok("get", "carried", "-o", "yaml")
    plane.ok("delete", "carried")


def test_tensorboard_shows_the_events_of_a_directory(plane: ControlPlane, project: Path) -> None:
    summary = pytest.importorskip("tensorboard.summary", reason="needs TensorBoard")
    writer = summary.Writer(str(project / "runs"))
    writer.add_scalar("loss", 0.5, 1)
    writer.close()
    done = plane.run("tensorboard", str(project / "runs"), "--print", timeout=120)
    assert done.returncode == 0, done.stderr
    page = of_link(done.stdout.strip())
    tags = "/notebook/default/tensorboard/data/plugin/scalars/tags"
    assert list(page.get(tags).json["."]) == ["loss"]
    _sleeps_and_wakes(plane, lambda: page.get(tags))
    wrong = plane.run("tensorboard", str(project / "nothing"))
    assert (wrong.returncode, "no such directory" in wrong.stderr) == (2, True)
    plane.ok("dev", "delete", "tensorboard")


def _sleeps_and_wakes(plane: ControlPlane, ask: Callable[[], Answer]) -> None:
    """Let the TensorBoard sleep by its annotation, and look at it again."""
    server = api(plane)

    def patience(said: str) -> None:
        change = json.dumps({"metadata": {"annotations": {"lockstep.dev/sleep-after": said}}})
        kind = "application/merge-patch+json"
        done = server.request("PATCH", f"/{NOTEBOOK}", change.encode(), content_type=kind)
        assert done.status == 200, done.body

    def there() -> bool:
        return "tensorboard-0" in [one["metadata"]["name"] for one in plane.read(PODS)["items"]]

    patience("1s")
    eventually_sync(lambda: not there(), 60, "it sleeps")
    assert plane.read(NOTEBOOK)["metadata"]["annotations"]["kubeflow-resource-stopped"] == "asleep"
    patience("never")

    def shown() -> bool:
        answer = ask()
        return answer.status == 200 and list(answer.json["."]) == ["loss"]

    eventually_sync(shown, 90, "it wakes as it is looked at")


def test_stopped_place_ends_and_comes_back(plane: ControlPlane, gateway: str) -> None:
    def pods() -> list[str]:
        return [one["metadata"]["name"] for one in plane.read(PODS)["items"]]

    plane.ok("dev", "stop", "ana")
    eventually_sync(lambda: "ana-0" not in pods(), 60, "the pod goes")
    assert "ana  Stopped" in plane.ok("dev", "list")
    plane.ok("dev", "resume", "ana")
    eventually_sync(lambda: "ana-0" in pods(), 60, "the pod comes")
    plane.ok("dev", "delete", "ana")
    eventually_sync(lambda: pods() == [], 90, "all goes")


def api(plane: ControlPlane) -> ApiServer:
    return ApiServer(plane.data, int(plane.ready_line.split()[1].rpartition(":")[2]))


def server_token(plane: ControlPlane) -> str:
    return _secret(plane, "server")


def page_token(plane: ControlPlane) -> str:
    return _secret(plane, "page")


def _secret(plane: ControlPlane, key: str) -> str:
    secret = plane.read("api/v1/namespaces/default/secrets/ana-notebook")["data"]
    return base64.b64decode(secret[key]).decode()
