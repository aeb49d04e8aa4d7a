"""Stub GPUs, a pod on the process node: its card alone, its metrics, its line in ``top``."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.support.control_plane import ControlPlane
from tests.support.stub_gpus import GIB, StubGpus
from tests.support.waiting import eventually_sync

ROOT = os.geteuid() == 0
MAJOR = 195
"""NVIDIA's; without its driver an open that is allowed says that there is no such device."""


@pytest.fixture
def files() -> Iterator[list[Path]]:
    """Device files of both cards, where they may be made and are not there."""
    made = []
    for minor in range(2):
        file = Path(f"/dev/nvidia{minor}")
        if ROOT and not file.exists():
            os.mknod(file, 0o20666, os.makedev(MAJOR, minor))
            made.append(file)
    yield made
    for file in made:
        file.unlink()


@pytest.fixture
def plane(
    tmp_path: Path, gpus: StubGpus, files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> Iterator[ControlPlane]:
    for name, value in gpus.environment().items():
        monkeypatch.setenv(name, value)
    running = ControlPlane(tmp_path / "cluster").start()
    yield running
    running.stop()


SCRIPT = """
echo visible $CUDA_VISIBLE_DEVICES
env -u CUDA_VISIBLE_DEVICES true
for minor in 0 1; do
  mknod /dev/shm/own-$$ c 195 $minor 2>/dev/null; rm -f /dev/shm/own-$$
  if dd if=/dev/nvidia$minor count=1 2>&1 | grep -q 'No such device'; then echo reaches $minor; fi
done
echo done
sleep 600
"""


def pod(name: str) -> str:
    main = {
        "name": "main",
        "image": "none",
        "command": ["sh", "-c", SCRIPT],
        "resources": {"limits": {"nvidia.com/gpu": "1"}},
    }
    sidecar = {
        "name": "sidecar",
        "image": "none",
        "command": ["sh", "-c", "echo visible [$CUDA_VISIBLE_DEVICES]; sleep 600"],
    }
    spec = {
        "schedulerName": "lockstep",
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
        "containers": [main, sidecar],
    }
    metadata = {"name": name, "labels": {"lockstep.dev/queue": "default"}}
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})


def said(plane: ControlPlane, name: str, container: str, end: str) -> str:
    def look() -> str | None:
        text = plane.run("logs", f"pod/{name}", "-c", container).stdout
        return text if end in text else None

    return eventually_sync(look, 90, f"{name} says {end}")


def metrics(plane: ControlPlane) -> dict[tuple[str, str], dict[str, Any]]:
    log = (plane.data / "log/agent.log").read_text()
    port = re.findall(r"metrics on port (\d+)", log)[-1]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    return {
        (sample.name, sample.labels["gpu"]): {**sample.labels, "value": sample.value}
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_pods_get_the_schedulers_card_and_are_seen_on_it(
    plane: ControlPlane, gpus: StubGpus, files: list[Path]
) -> None:
    gpus.card(1, {"utilization": 87, "gpm.2": 81, "memory_used": 20 * GIB, "power": 611_000})
    for name in ("one", "other"):
        plane.ok("submit", "-f", "-", stdin=pod(name))
    logs = {name: said(plane, name, "main", "done") for name in ("one", "other")}
    path = "api/v1/namespaces/default/pods/"
    given = {
        name: plane.read(path + name)["metadata"]["annotations"]["lockstep.dev/gpus"]
        for name in logs
    }
    assert sorted(given.values()) == ["0", "1"]
    for name, index in given.items():
        assert f"visible GPU-00000000-0000-0000-0000-00000000000{index}\n" in logs[name]
        if files:
            assert re.findall(r"reaches (\d)", logs[name]) == [index]
    assert "visible []" in said(plane, "one", "sidecar", "visible")

    def attributed() -> bool:
        found = metrics(plane)
        return all(
            found.get(("DCGM_FI_DEV_POWER_USAGE", index), {}).get("pod") == name
            for name, index in given.items()
        )

    eventually_sync(attributed, 60, "the metrics bear the pods' names")
    found = metrics(plane)
    assert found["DCGM_FI_DEV_POWER_USAGE", "1"]["value"] == 611
    assert found["dcgm_gpu_utilization", "1"]["value"] == 87
    assert found["DCGM_FI_PROF_SM_ACTIVE", "1"]["value"] == 0.81
    assert found["DCGM_FI_DEV_FB_USED", "1"]["queue"] == "default"

    def listed() -> list[dict[str, str]] | None:
        text = plane.ok("top", "gpus", "--queue", "default", "-o", "csv")
        rows = list(csv.DictReader(io.StringIO(text)))
        return rows if len(rows) == 2 and rows[1]["GPU %"] == "87" else None

    rows = eventually_sync(listed, 60, "top shows what the GPUs do")
    holder = next(name for name, index in given.items() if index == "1")
    assert (rows[1]["Pod"], rows[1]["SM %"], rows[1]["Watts"]) == (f"default/{holder}", "81", "611")
    assert plane.ok("top").splitlines()[-1].startswith("2 GPUs watched: 44 % busy")


def test_a_lost_card_is_withdrawn_from_the_node(plane: ControlPlane, gpus: StubGpus) -> None:
    def node() -> dict[str, Any]:
        found: dict[str, Any] = plane.read("api/v1/nodes")["items"][0]
        return found

    def healthy() -> list[bool]:
        told = json.loads(node()["metadata"]["annotations"]["lockstep.dev/devices"])
        return [one.get("healthy", True) for one in told]

    assert healthy() == [True, True]
    gpus.card(1, {"lost": 1})
    eventually_sync(lambda: healthy() == [True, False], 60, "the card is withdrawn")
    eventually_sync(
        lambda: node()["status"]["allocatable"]["nvidia.com/gpu"] == "1", 60, "the amount follows"
    )
    gpus.card(1, {"lost": 0})
    eventually_sync(lambda: healthy() == [True, True], 60, "the card is back")
