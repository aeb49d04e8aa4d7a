"""Lockstep installed on a real API server: nodes told apart, repeated without a change, removed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support import kube_binaries
from tests.support.kube_cluster import KubeCluster
from tests.support.kubectl import Kubectl
from tests.support.waiting import stretched

NFD = "feature.node.kubernetes.io"


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubeCluster]:
    kube_binaries.need("kube-apiserver")
    running = KubeCluster(tmp_path_factory.mktemp("bare") / "cluster", installs=False)
    try:
        yield running.start()
    finally:
        running.kill()


@pytest.mark.timeout(300)
def test_install_tells_nodes_apart_may_be_repeated_and_removed(
    bare: KubeCluster, tmp_path: Path
) -> None:
    kubectl = Kubectl(str(kube_binaries.need("kubectl")), bare.kubeconfig, tmp_path)
    for name, labels in (
        ("gpu", {f"{NFD}/pci-0302_10de.present": "true", f"{NFD}/rdma.available": "true"}),
        ("cpu", {}),
    ):
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}
        file = tmp_path / f"{name}.json"
        file.write_text(json.dumps(node))
        kubectl("create", "-f", str(file))

    def lockstep(*options: str) -> str:
        command = [sys.executable, "-m", "lockstep", "cluster", "install", *options]
        command += ["--kubeconfig", str(bare.kubeconfig)]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=stretched(120), check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def daemons() -> Any:
        return json.loads(
            kubectl("get", "-n", "lockstep-nodes", "ds", "lockstep-agent", "-o", "json")
        )

    said = json.loads(lockstep("-o", "json"))
    assert (said["gpu"]["kind"], said["gpu"]["rdma"], said["cpu"]["kind"]) == (
        "nvidia",
        True,
        "cpu",
    )
    assert "NVIDIA's driver" in said["gpu"]["missing"][0]
    labels = json.loads(kubectl("get", "node", "gpu", "-o", "json"))["metadata"]["labels"]
    assert labels["lockstep.dev/profile"] == "nvidia"
    assert kubectl("get", "queue", "default", "-o", "name").strip() == "queue.lockstep.dev/default"
    first = daemons()
    lockstep()
    assert daemons()["metadata"]["generation"] == first["metadata"]["generation"]

    def taints() -> list[tuple[str, str]]:
        spec = json.loads(kubectl("get", "node", "gpu", "-o", "json"))["spec"]
        return [(one["key"], one["value"]) for one in spec.get("taints", []) if "value" in one]

    assert taints() == []
    for _ in range(2):
        lockstep("--taint")
        assert taints() == [("nvidia.com/gpu", "lockstep")]
    removed = lockstep("--remove")
    assert taints() == []
    assert "taint of node/gpu" in removed
    assert "daemonset/lockstep-agent deleted" in removed
    left = kubectl(
        "get", "-A", "-l", "app.kubernetes.io/name=lockstep", "ds,deploy,sa", "-o", "name"
    )
    assert "lockstep" not in left
    labels = json.loads(kubectl("get", "node", "gpu", "-o", "json"))["metadata"]["labels"]
    assert "lockstep.dev/profile" not in labels
    assert lockstep("--remove") == ""
