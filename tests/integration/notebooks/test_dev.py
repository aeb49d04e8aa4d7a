"""A place to work in by one command: its packages, its shell, its kernels."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import uuid
import zipfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.support.apiserver import ApiServer
from tests.support.control_plane import ControlPlane
from tests.support.waiting import eventually_sync

pytest.importorskip("jupyterlab", reason="needs JupyterLab")
pytest.importorskip("asyncssh", reason="needs the notebooks extra")
websocket = pytest.importorskip("websocket", reason="needs websocket-client")

KERNELS = "apis/lockstep.dev/v1alpha1/namespaces/default/kernels"
PODS = "api/v1/namespaces/default/pods"
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
def link(plane: ControlPlane, project: Path) -> str:
    """The link to a place that is up."""
    lock = str(project / "lock.txt")
    done = plane.run("dev", "up", "ana", "--packages", lock, "--home", str(project), timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def ssh(plane: ControlPlane, *command: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    if shutil.which("ssh") is None:
        pytest.skip("no OpenSSH client on PATH")
    return plane.run("ssh", "ana", "--", *command, stdin=stdin)


def test_place_is_listed_as_ready(plane: ControlPlane, link: str) -> None:
    assert link.startswith("http://127.0.0.1:")
    assert "ana  Ready" in plane.ok("dev", "list")


def test_ssh_passes_input_output_and_exit_code(
    plane: ControlPlane, link: str, project: Path
) -> None:
    done = ssh(plane, "sh", "-c", "pwd; cat; exit 3", stdin="said\n")
    assert (done.stdout, done.returncode) == (f"{project}\nsaid\n", 3), done.stderr


def test_lock_without_exact_versions_is_refused(plane: ControlPlane, project: Path) -> None:
    (project / "loose.txt").write_text("numpy\n")
    done = plane.run("dev", "up", "ben", "--packages", str(project / "loose.txt"))
    assert done.returncode == 2
    assert "'numpy' has no exact version" in done.stderr


def test_kernel_has_the_packages_of_its_lock(plane: ControlPlane, link: str) -> None:
    base = f"http://{urlsplit(link).netloc}"
    token = server_token(plane)
    head = [f"Authorization: Bearer {token}"]
    body = json.dumps({"name": "ana"})
    posted = subprocess.run(
        ["curl", "-sS", "-H", head[0], "-d", body, f"{base}/api/kernels"],
        capture_output=True,
        text=True,
        check=True,
    )
    number = json.loads(posted.stdout)["id"]
    url = f"{base.replace('http', 'ws')}/api/kernels/{number}/channels"
    client = websocket.create_connection(url, header=head, timeout=90)
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


def test_stranger_gets_no_kernel_and_no_page(plane: ControlPlane, link: str) -> None:
    parts = urlsplit(link)
    token = parse_qs(parts.query)["lockstep-token"][0]
    wrong = f"{'0' if token[0] != '0' else '1'}{token[1:]}"
    base = f"http://{parts.netloc}"
    for url, header in (
        (f"{base}/api/kernels", "X-None: 1"),
        (f"{base}/api/kernels", f"Authorization: Bearer default/ana/{wrong}"),
        (f"{base}/api/kernels", f"Authorization: Bearer default/ana/{token}"),
        (f"{base}{parts.path}", "X-None: 1"),
        (f"{base}{parts.path}?lockstep-token={wrong}", "X-None: 1"),
    ):
        done = subprocess.run(
            ["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", "-H", header, url],
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout in ("401", "403"), url


def test_notebook_and_command_run_as_jobs_in_its_environment(
    plane: ControlPlane, link: str, project: Path
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


def test_tensorboard_shows_the_events_of_a_directory(plane: ControlPlane, project: Path) -> None:
    summary = pytest.importorskip("tensorboard.summary", reason="needs TensorBoard")
    writer = summary.Writer(str(project / "runs"))
    writer.add_scalar("loss", 0.5, 1)
    writer.close()
    done = plane.run("tensorboard", str(project / "runs"), "--print", timeout=120)
    assert done.returncode == 0, done.stderr
    base, _, token = done.stdout.strip().partition("?lockstep-token=")
    tags = f"{base}data/plugin/scalars/tags"
    cookie = f"lockstep-notebook={token}"
    shown = subprocess.run(
        ["curl", "-sS", "-b", cookie, tags], capture_output=True, text=True, check=True
    )
    assert list(json.loads(shown.stdout)["."]) == ["loss"]
    _sleeps_and_wakes(plane, ["curl", "-sS", "-b", cookie, tags])
    wrong = plane.run("tensorboard", str(project / "nothing"))
    assert (wrong.returncode, "no such directory" in wrong.stderr) == (2, True)
    plane.ok("dev", "delete", "tensorboard")


def _sleeps_and_wakes(plane: ControlPlane, ask: list[str]) -> None:
    """Let the TensorBoard sleep by its annotation, and look at it again."""
    server = ApiServer(plane.data, int(plane.ready_line.split()[1].rpartition(":")[2]))

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
        answer = subprocess.run(ask, capture_output=True, text=True, check=True)
        return answer.stdout.startswith("{") and list(json.loads(answer.stdout)["."]) == ["loss"]

    eventually_sync(shown, 90, "it wakes as it is looked at")


def test_stopped_place_ends_and_comes_back(plane: ControlPlane, link: str) -> None:
    def pods() -> list[str]:
        return [one["metadata"]["name"] for one in plane.read(PODS)["items"]]

    plane.ok("dev", "stop", "ana")
    eventually_sync(lambda: "ana-0" not in pods(), 60, "the pod goes")
    assert "ana  Stopped" in plane.ok("dev", "list")
    plane.ok("dev", "resume", "ana")
    eventually_sync(lambda: "ana-0" in pods(), 60, "the pod comes")
    plane.ok("dev", "delete", "ana")
    eventually_sync(lambda: pods() == [], 90, "all goes")


def server_token(plane: ControlPlane) -> str:
    secret = plane.read("api/v1/namespaces/default/secrets/ana-notebook")["data"]
    return base64.b64decode(secret["server"]).decode()
