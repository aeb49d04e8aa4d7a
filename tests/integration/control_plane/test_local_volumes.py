"""Claims on ``lockstep up``: directories that outlive pods and go with the claim."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.control_plane import ControlPlane
from tests.support.waiting import eventually_sync

CORE = "api/v1/namespaces/default"


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[ControlPlane]:
    made = ControlPlane(tmp_path / "up").start()
    yield made
    made.stop()


def claim(name: str, **spec: Any) -> dict[str, Any]:
    asks = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    meta = {"name": name, "namespace": "default"}
    whole = {**asks, **spec}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": whole}


def pod(name: str, script: str) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": "none",
        "command": ["sh", "-c", script],
        "volumeMounts": [{"name": "v", "mountPath": "/mnt"}],
    }
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "kept"}}
    spec = {"schedulerName": "lockstep", "restartPolicy": "Never", "volumes": [volume]}
    meta = {"name": name, "namespace": "default"}
    body = {"metadata": meta, "spec": {**spec, "containers": [container]}}
    return {"apiVersion": "v1", "kind": "Pod", **body}


def submit(plane: ControlPlane, *objects: dict[str, Any]) -> None:
    plane.ok("submit", "-f", "-", stdin="\n---\n".join(json.dumps(one) for one in objects))


def phase(plane: ControlPlane, what: str) -> str:
    return str(plane.read(f"{CORE}/{what}").get("status", {}).get("phase", ""))


@pytest.mark.timeout(200)
def test_a_claim_is_a_directory_that_outlives_pods(plane: ControlPlane) -> None:
    submit(plane, claim("kept"), claim("other", storageClassName="fast"))
    claimed = "persistentvolumeclaims/kept"
    eventually_sync(lambda: phase(plane, claimed) == "Bound", 30, "the claim is bound")
    submit(plane, pod("writes", "echo word > /mnt/file"))
    eventually_sync(lambda: phase(plane, "pods/writes") == "Succeeded", 60, "a pod has written")
    submit(plane, pod("reads", "cat /mnt/file"))
    eventually_sync(lambda: phase(plane, "pods/reads") == "Succeeded", 60, "another has read")
    assert plane.ok("logs", "pod/reads") == "word\n"
    [volume] = plane.read("api/v1/persistentvolumes")["items"]
    place = Path(volume["spec"]["hostPath"]["path"])
    assert (place / "file").read_text() == "word\n"
    assert phase(plane, "persistentvolumeclaims/other") in ("", "Pending")
    [known] = plane.read("apis/storage.k8s.io/v1/storageclasses")["items"]
    assert known["metadata"]["name"] == "local-path"

    plane.delete(f"{CORE}/{claimed}")
    eventually_sync(lambda: not place.exists(), 30, "the directory goes with the claim")
    eventually_sync(lambda: not plane.read("api/v1/persistentvolumes")["items"], 30, "and so on")
