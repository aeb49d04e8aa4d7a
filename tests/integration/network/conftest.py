"""Three nodes as namespaces, an API server that they reach, and their agents."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest
from tests.support.fabric import Fabric, needs_namespaces
from tests.support.network_world import PATHS, World
from tests.support.waiting import eventually_sync

from lockstep.api.crd import manifests

PATHS["CustomResourceDefinition"] += "customresourcedefinitions"
PATHS["Pod"] = "/api/v1/namespaces/default/pods"
PATHS["Topology"] = "/apis/lockstep.dev/v1alpha1/topologies"


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    needs_namespaces()
    data = tmp_path_factory.mktemp("fabric")
    fabric = Fabric(3, rate="200mbit")
    running: list[subprocess.Popen[bytes]] = []
    try:
        fabric.start()
        here = World(fabric, data)
        command = [sys.executable, "-m", "lockstep", "apiserver", "--data", str(data)]
        command += ["--host", fabric.host, "--port", "0"]
        with (data / "apiserver.log").open("wb") as log:
            running.append(subprocess.Popen(command, stdout=log, stderr=log))
        eventually_sync(lambda: here.run("list", "nodes").returncode == 0, 60, "the API server")
        here.create(*manifests())
        nodes = [
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"n{i}"}} for i in (1, 2, 3)
        ]
        here.create(*nodes)
        for i in (1, 2, 3):
            running.append(fabric.agent(f"n{i}", here.kubeconfig, data / f"agent-{i}.log"))
        yield here
    finally:
        for one in running:
            one.terminate()
        for one in running:
            one.wait(20)
        fabric.stop()
