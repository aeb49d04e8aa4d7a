"""The programs that users open from the console, real ones: JupyterLab and TensorBoard."""

from __future__ import annotations

import json
import secrets
import shlex
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.support.control_plane import ControlPlane
from tests.support.kube_apiserver import free_ports
from tests.support.waiting import eventually_sync

PATIENCE = 120_000
EVENTS = """
import sys
from tensorboard.compat.proto import event_pb2, summary_pb2
from tensorboard.summary.writer.event_file_writer import EventFileWriter
writer = EventFileWriter(sys.argv[1])
for step in range(5):
    value = summary_pb2.Summary.Value(tag="loss", simple_value=1.0 / (step + 1))
    summary = summary_pb2.Summary(value=[value])
    writer.add_event(event_pb2.Event(step=step, wall_time=step, summary=summary))
writer.close()
"""


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    running = ControlPlane(tmp_path_factory.mktemp("up") / "data").start()
    yield running
    running.stop()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    context.set_default_timeout(PATIENCE)
    expect.set_options(timeout=PATIENCE)
    yield context.new_page()
    context.close()


def need(module: str) -> None:
    if find_spec(module) is None:
        pytest.skip(f"needs {module}")


def opened(plane: ControlPlane, page: Page, app: tuple[str, int, str], sign: str) -> None:
    """Open *app*, a job, a port of its pod and a path, from the console until *sign* is seen."""
    name, port, path = app
    page.goto(plane.ok("console", "--print", "--data", str(plane.data)).strip())
    expect(page.get_by_role("button", name="Sign out")).to_be_visible()
    asked = """async ([pod, port, path]) => (await (await fetch('/api/apps', {method: 'POST',
      headers: {'X-Lockstep-Console': '1'}, body: JSON.stringify({namespace: 'default',
      pod, port, path})})).json()).url"""
    address = page.evaluate(asked, [f"{name}-worker-0", port, path])

    def answers() -> bool:
        answer = page.goto(page.url if "apps." in page.url else address)
        return answer is not None and answer.status == 200

    eventually_sync(answers, PATIENCE / 1000, f"{name} answers through the console")
    assert ".apps.localhost:" in page.url
    expect(page.locator(sign).first).to_be_visible()


@pytest.mark.soak
def test_a_cell_runs_in_jupyterlab(plane: ControlPlane, page: Page, tmp_path: Path) -> None:
    need("jupyterlab")
    (port,) = free_ports(1)
    cell = {"cell_type": "code", "id": "a", "metadata": {}, "outputs": [], "execution_count": None}
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python", "language": "python"}}
    cells = [{**cell, "source": "print('product', 6 * 7)"}]
    book = {"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}
    (tmp_path / "work.ipynb").write_text(json.dumps(book))
    token = secrets.token_hex(16)
    settings = ("allow_remote_access=True", f"root_dir={tmp_path}")
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"]
    command += ["--ip", "0.0.0.0", "--port", str(port)]  # noqa: S104  the pod's own address
    command += [f"--ServerApp.{one}" for one in settings] + [f"--IdentityProvider.token={token}"]
    plane.ok("submit", "plain", "--name", "lab", "--", *command)
    plane.eventually_phase("lab", "Running")
    opened(
        plane,
        page,
        ("lab", port, f"/lab/tree/work.ipynb?token={token}"),
        ".jp-Notebook .jp-CodeCell",
    )
    page.locator("#jp-main-statusbar").get_by_text("| Idle").wait_for()
    page.locator(".jp-CodeCell .cm-content").first.click()
    page.keyboard.press("Control+Enter")
    expect(page.locator(".jp-OutputArea-output").first).to_contain_text("product 42")


@pytest.mark.soak
def test_a_scalar_is_drawn_by_tensorboard(plane: ControlPlane, page: Page, tmp_path: Path) -> None:
    need("tensorboard")
    (port,) = free_ports(1)
    serve = [sys.executable, "-m", "tensorboard.main", "--logdir", str(tmp_path), "--load_fast",
             "false", "--bind_all", "--port", str(port)]  # fmt: skip
    write = [sys.executable, "-c", EVENTS, str(tmp_path / "run")]
    script = f"{shlex.join(write)} && exec {shlex.join(serve)}"
    plane.ok("submit", "plain", "--name", "board", "--", "sh", "-c", script)
    plane.eventually_phase("board", "Running")
    opened(plane, page, ("board", port, "/?darkMode=false#timeseries"), "scalar-card")
    card = page.locator("scalar-card").first
    expect(card).to_contain_text("loss")
    expect(card.locator("canvas, svg path.line").first).to_be_attached()
