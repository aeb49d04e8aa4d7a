"""Nodes that join later: with a data cache of their own accord, or without one, which they say."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.support.control_plane import LOCKSTEP, ControlPlane
from tests.support.waiting import eventually_sync

pytest.importorskip("obstore", reason="needs the data extra")
FLUID = "apis/data.fluid.io/v1alpha1/namespaces/default"
CORE = "api/v1/namespaces/default"
SHARE = "share.data.lockstep.dev/default.set"
KUBELET = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "kubelet"}}


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[ControlPlane]:
    made = ControlPlane(tmp_path / "up").start()
    yield made
    made.stop()


def joined(plane: ControlPlane, place: Path, name: str, *more: str) -> subprocess.Popen[str]:
    words = ("process-node", "--name", name, "--data", str(place / name))
    own = ("--kubeconfig", str(plane.kubeconfig))
    with (place / f"{name}.log").open("w") as log:
        node = subprocess.Popen(
            [*LOCKSTEP, *words, *own, *more], stdout=subprocess.PIPE, stderr=log, text=True
        )
    assert node.stdout is not None
    assert node.stdout.readline().startswith("ready")
    return node


def reader(name: str, **spec: Any) -> dict[str, Any]:
    script = "import os, pathlib; print(pathlib.Path('/d/a').read_text())"
    container = {
        "name": "main",
        "image": "none",
        "command": [sys.executable, "-c", script],
        "volumeMounts": [{"name": "d", "mountPath": "/d"}],
    }
    volume = {"name": "d", "persistentVolumeClaim": {"claimName": "set"}}
    plain = {"schedulerName": "lockstep", "restartPolicy": "Never"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {**plain, "containers": [container], "volumes": [volume], **spec},
    }


def fluid(kind: str, **spec: Any) -> dict[str, Any]:
    meta = {"name": "set", "namespace": "default"}
    return {"apiVersion": "data.fluid.io/v1alpha1", "kind": kind, "metadata": meta, "spec": spec}


def submit(plane: ControlPlane, *objects: dict[str, Any]) -> None:
    plane.ok("submit", "-f", "-", stdin="\n---\n".join(json.dumps(one) for one in objects))


def caches(plane: ControlPlane) -> dict[str, Any]:
    items = plane.read("apis/lockstep.dev/v1alpha1/namespaces/default/datasetcaches")["items"]
    return {one["spec"]["node"]: one.get("status", {}) for one in items}


def pod(plane: ControlPlane, name: str) -> dict[str, Any]:
    found: dict[str, Any] = plane.read(f"{CORE}/pods/{name}")
    return found


def succeeded(plane: ControlPlane, name: str) -> bool:
    return bool(pod(plane, name)["status"].get("phase") == "Succeeded")


@pytest.mark.timeout(300)
def test_only_nodes_with_a_data_cache_get_datasets_and_readers(
    plane: ControlPlane, tmp_path: Path
) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "a").write_text("here")
    nowhere = tmp_path / "nowhere.yaml"
    nowhere.write_text("{}")
    added = joined(plane, tmp_path, "added")
    lame = joined(plane, tmp_path, "lame", "--data-cache", str(nowhere))
    try:
        submit(
            plane,
            fluid(
                "Dataset", mounts=[{"mountPoint": f"local://{source}", "name": "x", "path": "/"}]
            ),
            fluid("AlluxioRuntime", replicas=3),
            fluid("DataLoad", dataset={"name": "set"}),
        )

        def label() -> Any:
            found = plane.read("api/v1/nodes/lame")["metadata"]["labels"]
            return found if found.get("lockstep.dev/data-cache") == "false" else None

        eventually_sync(label, 60, "the node says that it has no data cache")

        def loaded() -> bool:
            found = plane.read(f"{FLUID}/dataloads/set").get("status", {})
            return bool(found.get("phase") == "Complete")

        eventually_sync(loaded, 60, "the warm-up waits for no absent copy")
        assert caches(plane)["added"]["phase"] == "Ready"
        names = [f"reader-{index}" for index in range(6)]
        submit(plane, *(reader(name) for name in names))
        submit(plane, reader("there", nodeSelector={"kubernetes.io/hostname": "added"}))
        submit(plane, reader("stuck", nodeName="lame"))
        for name in (*names, "there"):
            eventually_sync(partial(succeeded, plane, name), 60, f"{name} has read")
        assert "lame" not in {pod(plane, name)["spec"]["nodeName"] for name in names}

        def said() -> str:
            [one] = pod(plane, "stuck")["status"]["containerStatuses"]
            return str(one["state"]["waiting"].get("message", ""))

        eventually_sync(lambda: "node lame runs no data cache" in said(), 30, "the pod says why")
        assert "data-cache --node lame" in said()
        submit(plane, KUBELET)

        def marked() -> Any:
            return plane.read("api/v1/nodes/kubelet")["metadata"]["labels"].get(SHARE)

        eventually_sync(lambda: marked() == "no", 30, "a kubelet's node has no data cache either")
        labels = {"metadata": {"labels": {"lockstep.dev/data-cache": "true"}}}
        plane.merge("api/v1/nodes/kubelet", labels)
        eventually_sync(lambda: marked() != "no", 30, "its cache has come")
    finally:
        for node in (added, lame):
            node.terminate()
            node.wait(60)
