"""Claims for devices on the process node: one model with annotations, from slice to container."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.control_plane import ControlPlane
from tests.support.stub_gpus import StubGpus
from tests.support.waiting import eventually_sync

FIRST, SECOND = (f"GPU-00000000-0000-0000-0000-00000000000{index}" for index in range(2))
DRIVER, GROUP = "gpu.lockstep.dev", "apis/resource.k8s.io/v1"
CLAIMS = f"{GROUP}/namespaces/default/resourceclaims"
EXAMPLE = Path("examples/devices/claim.yaml")


@pytest.fixture
def plane(
    tmp_path: Path, gpus: StubGpus, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ControlPlane]:
    for name, value in gpus.environment().items():
        monkeypatch.setenv(name, value)
    running = ControlPlane(tmp_path / "cluster").start()
    yield running
    running.stop()


def pod(name: str, claim: str = "", *, gpus: int = 0, then: str = "sleep 600") -> str:
    main: dict[str, Any] = {
        "name": "main",
        "image": "none",
        "command": ["sh", "-c", f"echo visible [$CUDA_VISIBLE_DEVICES]; {then}"],
    }
    beside = {**main, "name": "beside"}
    spec: dict[str, Any] = {
        "schedulerName": "lockstep",
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
    }
    if claim:
        main["resources"] = {"claims": [{"name": "gpu"}]}
        spec["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": claim}]
    else:
        main["resources"] = {"limits": {"nvidia.com/gpu": str(gpus)}}
    whole = {**spec, "containers": [main, beside]}
    return json.dumps(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": whole}
    )


def said(plane: ControlPlane, name: str, container: str = "main") -> str:
    def look() -> str | None:
        text = plane.run("logs", f"pod/{name}", "-c", container).stdout
        return text if "visible" in text else None

    return eventually_sync(look, 90, f"{name} speaks")


def claims(plane: ControlPlane) -> dict[str, dict[str, Any]]:
    """Return the claims by the pod that they were made for."""
    found = plane.read(CLAIMS)["items"]
    return {one["metadata"]["ownerReferences"][0]["name"]: one for one in found}


def devices(claim: dict[str, Any]) -> list[str]:
    results = claim["status"]["allocation"]["devices"]["results"]
    return [one["device"] for one in results]


def slices(plane: ControlPlane) -> list[dict[str, Any]]:
    found = plane.read(f"{GROUP}/resourceslices")["items"]
    return [device for one in found for device in one["spec"]["devices"]]


def test_claims_and_annotations_share_a_node(plane: ControlPlane, gpus: StubGpus) -> None:
    eventually_sync(lambda: len(slices(plane)) == 2, 60, "both cards are published")
    names = [one["name"] for one in slices(plane)]
    assert names == [FIRST.lower(), SECOND.lower()]
    template, example = yaml.safe_load_all(EXAMPLE.read_text())
    plane.create(f"{GROUP}/namespaces/default/resourceclaimtemplates", template)
    plane.ok("submit", "-f", "-", stdin=pod("asking", gpus=1))
    asked = said(plane, "asking")
    example["spec"]["containers"].append(json.loads(pod("any"))["spec"]["containers"][1])
    plane.ok("submit", "-f", "-", stdin=json.dumps(example))
    got = said(plane, "claimed")
    assert {FIRST in asked, FIRST in got} == {True, False}
    card = SECOND if FIRST in asked else FIRST
    assert f"visible [{card}]" in got
    assert "visible []" in said(plane, "claimed", "beside")
    held = claims(plane)["claimed"]
    assert devices(held) == [card.lower()]
    assert [one["name"] for one in held["status"]["reservedFor"]] == ["claimed"]
    told = plane.read("api/v1/namespaces/default/pods/claimed")["metadata"]["annotations"]
    assert told["lockstep.dev/gpus"] == str((FIRST, SECOND).index(card))

    plane.ok("submit", "-f", "-", stdin=pod("next", "big-card", then="true"))
    eventually_sync(lambda: "next" in claims(plane), 60, "its claim is made")
    plane.ok("delete", "pod/claimed")
    assert card in said(plane, "next")
    eventually_sync(lambda: not claims(plane), 60, "claims of pods that ended are gone")

    gpus.card((FIRST, SECOND).index(card), {"lost": 1})
    tainted = f"{DRIVER}/unhealthy"

    def lost() -> bool:
        taints = {one["name"]: one.get("taints", []) for one in slices(plane)}
        return [one["key"] for one in taints[card.lower()]] == [tainted]

    eventually_sync(lost, 60, "the lost card is tainted")
    plane.ok("submit", "-f", "-", stdin=pod("after", "big-card"))
    waits = eventually_sync(
        lambda: (text := plane.run("explain", "pod/after").stdout) and DRIVER in text and text,
        60,
        "it is said why the pod waits",
    )
    assert "device claims (1 gpu.lockstep.dev" in waits
