"""Two pods on one stub GPU of the process node: their memory and their time are held apart."""

from __future__ import annotations

import csv
import io
import json
import re
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.support.control_plane import ControlPlane
from tests.support.stub_gpus import TENANT, StubGpus
from tests.support.waiting import eventually_sync

from lockstep.devices.sharing.layout import AccountHead

Json = dict[str, Any]
SCRIPT = "{tenant} info alloc 600 plain alloc 600 async info run busy_1ms 600"
"""Takes 600 MiB, is refused the next 600, and keeps the card busy."""


@pytest.fixture
def plane(
    tmp_path: Path, gpus: StubGpus, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ControlPlane]:
    for name, value in gpus.environment().items():
        monkeypatch.setenv(name, value)
    running = ControlPlane(tmp_path / "cluster").start()
    yield running
    running.stop()


def pod(name: str, gpus: StubGpus, limits: Json, **spec: Any) -> Json:
    seen = {key: value for key, value in gpus.environment().items() if key != "LD_LIBRARY_PATH"}
    main = {
        "name": "main",
        "image": "none",
        "command": ["sh", "-c", SCRIPT.format(tenant=TENANT)],
        "env": [{"name": key, "value": value} for key, value in seen.items()],
        "resources": {"limits": limits},
    }
    spec = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
        "containers": [main],
        **spec,
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def shares(plane: ControlPlane) -> dict[str, dict[str, str]]:
    text = plane.ok("top", "shares", "-o", "csv")
    return {row["Pod"]: row for row in csv.DictReader(io.StringIO(text))}


def said(plane: ControlPlane, name: str, end: str) -> str:
    def look() -> str | None:
        text = plane.run("logs", f"pod/{name}").stdout
        return text if end in text else None

    return eventually_sync(look, 60, f"{name} says {end!r}")


def events(plane: ControlPlane, reason: str) -> list[str]:
    items = plane.read("api/v1/namespaces/default/events")["items"]
    return [one["message"] for one in items if one["reason"] == reason]


def percent(row: dict[str, str]) -> int:
    return int(row["Compute"].partition("/")[0])


def shares_of_metrics(plane: ControlPlane) -> dict[tuple[str, str], float]:
    log = (plane.data / "log/agent.log").read_text()
    port = re.findall(r"metrics on port (\d+)", log)[-1]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    return {
        (sample.name, sample.labels.get("pod") or sample.labels.get("podname", "")): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


OURS = {"lockstep.dev/gpu-memory": "1000", "lockstep.dev/gpu-compute": "30"}
HAMIS = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "1000", "nvidia.com/gpucores": "60"}


def test_two_pods_on_a_card_are_held_apart(plane: ControlPlane, gpus: StubGpus) -> None:
    ours = pod("ours", gpus, OURS, schedulerName="lockstep")
    foreign = pod("foreign", gpus, HAMIS)
    foreign["spec"]["containers"][0]["env"].append(
        {"name": "GPU_CORE_UTILIZATION_POLICY", "value": "force"}
    )
    for one in (ours, foreign):
        plane.ok("submit", "-f", "-", stdin=json.dumps(one))
    for name in ("ours", "foreign"):
        lines = said(plane, name, "info 400 1000").splitlines()
        assert lines == [
            "info 1000 1000",
            "alloc plain CUDA_SUCCESS",
            "alloc async CUDA_ERROR_OUT_OF_MEMORY",
            "info 400 1000",
        ]

    def held() -> dict[str, dict[str, str]] | None:
        found = shares(plane)
        busy = {name: percent(row) for name, row in found.items()}
        near = abs(busy.get("ours", 0) - 30) <= 2 and abs(busy.get("foreign", 0) - 60) <= 2
        return found if near else None

    found = eventually_sync(held, 60, "both use what they were granted, and no more")
    assert {row["GPU"] for row in found.values()} == {"0"}
    for row in found.values():
        assert row["Memory"] == "600/1000Mi"
        assert row["Refused"] == "1"
        assert row["Leases"] == "granted"
    assert found["foreign"]["Policy"] == "fixed"

    metrics = shares_of_metrics(plane)
    assert metrics["lockstep_share_memory_used_bytes", "ours"] == 600 << 20
    assert metrics["hami_vgpu_memory_limit_bytes", "foreign"] == 1000 << 20
    assert metrics["Device_utilization_desc_of_container", "foreign"] == pytest.approx(60, abs=3)

    # Its share changes while it runs.
    assert "1000 MiB, 40 % (before: 1000 MiB, 30 %)" in plane.ok("share", "ours", "--compute", "40")
    refused = plane.run("share", "ours", "--compute", "41")
    assert refused.returncode == 1
    assert "1 hundredths of compute more are wanted of GPU 0" in refused.stderr
    assert "which has 0 left" in refused.stderr
    below = plane.run("share", "ours", "--memory", "500")
    assert below.returncode == 1
    assert "uses 600 MiB of a card, which is more than the 500 MiB" in below.stderr
    plane.ok("share", "ours", "--memory", "700")
    # So can that of a pod in another system's words.
    assert "800 MiB, 60 % (before: 1000" in plane.ok("share", "foreign", "--memory", "800")

    def resized() -> dict[str, str] | None:
        row = shares(plane)["ours"]
        return row if row["Memory"] == "600/700Mi" and abs(percent(row) - 40) <= 2 else None

    assert eventually_sync(resized, 60, "it is held to its new size")["Compute"].endswith("/40%")
    assert plane.ok("share", "ours").strip() == "pod/ours main: 700 MiB, 40 % of each of its cards"
    seen = plane.read("api/v1/namespaces/default/pods/ours")["status"]["containerStatuses"][0]
    assert seen["resources"]["limits"] == {
        "lockstep.dev/gpu-memory": "700",
        "lockstep.dev/gpu-compute": "40",
    }

    plane.ok("delete", "pod/ours")
    eventually_sync(lambda: list(shares(plane)) == ["foreign"], 60, "its share is gone")

    # A program says that it looked up a call that the front does not know: its pod is told.
    uid = plane.read("api/v1/namespaces/default/pods/foreign")["metadata"]["uid"]
    account = plane.data / f"node/shares/{uid}/main.account"
    with account.open("r+b") as file:
        for where, bytes_ in ((AccountHead.unknown, b"\1"), (AccountHead.stranger, b"cuNew\0")):
            file.seek(where.offset)
            file.write(bytes_)
    told = eventually_sync(lambda: events(plane, "ShareNotHeld"), 60, "its pod is told")
    assert "looked up 1 calls of the driver" in told[0]
    assert "the last is cuNew," in told[0]
    with account.open("r+b") as file:
        file.seek(AccountHead.unknown.offset)
        file.write(b"\0")

    # Another program that meets no front: NVML sees more than was metered.
    gpus.card(0, {"utilization": 100})

    def fenced() -> bool:
        node = plane.read("api/v1/nodes")["items"][0]
        return "gpu/0" in str(node["metadata"]["annotations"].get("lockstep.dev/fenced"))

    eventually_sync(fenced, 60, "the card is kept from others")
    told = events(plane, "UnmeteredGpuTime")
    assert told
    assert "GPU 0 was busy for 100 %" in told[0]
