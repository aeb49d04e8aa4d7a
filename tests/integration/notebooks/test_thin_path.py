"""JupyterLab in a browser, its kernel on the only GPU, parked for a job, and its variables back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.apiserver import ApiServer
from tests.support.console import chromium
from tests.support.control_plane import ControlPlane
from tests.support.stub_gpus import StubGpus, one
from tests.support.waiting import eventually_sync

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytest.importorskip("jupyterlab", reason="needs JupyterLab")

NOTEBOOKS = "/apis/kubeflow.org/v1beta1/namespaces/default/notebooks"
ENVIRONMENTS = "/apis/lockstep.dev/v1alpha1/namespaces/default/environments"
KERNELS = "apis/lockstep.dev/v1alpha1/namespaces/default/kernels"
PATIENCE = 60.0
FIRST = "import numpy as np; weights = np.arange(4.0); step = lambda: weights * 2"
SECOND = "weights[0] = 7; print('sum', step().sum())"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home of the notebook's user, with a notebook of two cells in it."""
    place = tmp_path_factory.mktemp("home")
    cells = [
        {
            "cell_type": "code",
            "id": f"cell{number}",
            "metadata": {},
            "outputs": [],
            "execution_count": None,
            "source": source,
        }
        for number, source in enumerate((FIRST, SECOND))
    ]
    kernelspec = {"name": "gpu", "display_name": "gpu", "language": "python"}
    book = {
        "cells": cells,
        "metadata": {"kernelspec": kernelspec},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    (place / "work.ipynb").write_text(json.dumps(book))
    return place


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane on a machine with one card."""
    place = tmp_path_factory.mktemp("plane")
    gpus = StubGpus(place / "gpus")
    gpus.update(one())
    with pytest.MonkeyPatch.context() as patch:
        for name, value in gpus.environment().items():
            patch.setenv(name, value)
        running = ControlPlane(place / "cluster").start()
        yield running
        running.stop()


def create(plane: ControlPlane, path: str, body: dict[str, Any]) -> None:
    server = ApiServer(plane.data, int(plane.ready_line.split()[1].rpartition(":")[2]))

    def sent() -> bool:
        return server.request("POST", path, body).status in (201, 409)

    eventually_sync(sent, PATIENCE, f"{path} is served")


def notebook(home: Path) -> dict[str, Any]:
    container = {
        "name": "ana",
        "image": "kubeflownotebookswg/jupyter-scipy:v1.10.0",
        "workingDir": str(home),
        "env": [{"name": "HOME", "value": str(home)}],
        "volumeMounts": [{"name": "workspace", "mountPath": str(home)}],
    }
    spec = {
        "containers": [container],
        "volumes": [{"name": "workspace", "hostPath": {"path": str(home)}}],
    }
    return {
        "apiVersion": "kubeflow.org/v1beta1",
        "kind": "Notebook",
        "metadata": {"name": "ana", "annotations": {"lockstep.dev/kernels": "remote"}},
        "spec": {"template": {"spec": spec}},
    }


def kernel(plane: ControlPlane) -> dict[str, Any]:
    items = plane.read(KERNELS)["items"]
    return dict(items[0].get("status", {})) if items else {}


def run_cell(page: Page, number: int) -> None:
    page.locator(".jp-Notebook .jp-CodeCell").nth(number).locator(".cm-content").click()
    page.keyboard.press("Control+Enter")


@pytest.mark.timeout(600)
def test_parked_kernel_lends_its_card_and_keeps_its_variables(
    plane: ControlPlane, home: Path
) -> None:
    environment = {
        "apiVersion": "lockstep.dev/v1alpha1",
        "kind": "Environment",
        "metadata": {"name": "gpu"},
        "spec": {"resources": {"nvidia.com/gpu": 1}, "idle": {"after": "8s"}},
    }
    create(plane, ENVIRONMENTS, environment)
    create(plane, NOTEBOOKS, notebook(home))

    def served() -> bool:
        found = plane.read(f"{NOTEBOOKS[1:]}/ana").get("status", {})
        return bool(found.get("readyReplicas") == 1 and found["containerState"].get("running"))

    eventually_sync(served, PATIENCE, "the notebook's status says that it runs")
    with chromium() as browser:
        page = browser.new_page()
        page.set_default_timeout(PATIENCE * 1000)
        page.goto(plane.ok("dev", "open", "ana", "--print").strip())
        page.wait_for_url("**/notebook/default/ana/lab**")
        own = page.url.partition("/lab")[0]
        work = f"{own}/lab/tree/work.ipynb"
        eventually_sync(lambda: opened(page, work), PATIENCE, "the notebook opens")
        assert ".apps.localhost:" in own
        page.locator("#jp-main-statusbar").get_by_text("| Idle").wait_for()
        run_cell(page, 0)
        prompt = page.locator(".jp-CodeCell").first.locator(".jp-InputPrompt")
        eventually_sync(lambda: prompt.inner_text() == "[1]:", PATIENCE, "the first cell ran")
        assert kernel(plane)["phase"] == "Running"

        plane.ok("submit", "plain", "--name", "waits", "--gpus", "1", "--", "true")
        # On a busy machine the kernel may have been idle long enough by now.
        assert plane.phase("waits") == "Pending" or kernel(plane)["phase"] != "Running"
        eventually_sync(lambda: kernel(plane)["phase"] == "Parked", PATIENCE, "the kernel parks")
        plane.eventually_phase("waits", "Succeeded", PATIENCE)

        run_cell(page, 1)
        output = page.locator(".jp-CodeCell").nth(1).locator(".jp-OutputArea-output")
        eventually_sync(
            lambda: output.count() and "sum 26.0" in output.last.inner_text(),
            PATIENCE,
            "the second cell finds what the first one made",
        )


def opened(page: Page, where: str) -> bool:
    answer = page.goto(where)
    return answer is not None and answer.status == 200
