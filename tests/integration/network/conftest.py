"""Three nodes as namespaces, an API server that they reach, and their agents."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.support.fabric import Fabric, needs_namespaces
from tests.support.waiting import eventually_sync

from lockstep.api.crd import manifests
from lockstep.kube.client import Client
from lockstep.kube.config import ClusterConfig

PATHS = {"Node": "/api/v1/nodes", "CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/"}
PATHS["CustomResourceDefinition"] += "customresourcedefinitions"
PATHS["Pod"] = "/api/v1/namespaces/default/pods"
PATHS["Topology"] = "/apis/lockstep.dev/v1alpha1/topologies"
RAILS = ("rail0=10.60.0.0/16", "rail1=10.61.0.0/16")


@dataclass
class World:
    """The fabric with a control plane over its management network."""

    fabric: Fabric
    data: Path

    @property
    def kubeconfig(self) -> Path:
        return self.data / "kubeconfig"

    def run(self, *command: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run the command line against the server."""
        whole = [sys.executable, "-m", "lockstep", *command, "--kubeconfig", str(self.kubeconfig)]
        return subprocess.run(
            whole, capture_output=True, text=True, timeout=120, input=stdin, check=False
        )

    def read(self, path: str) -> Any:
        """Return an object of the server by its path."""

        async def ask() -> bytes:
            async with Client(ClusterConfig.load(self.kubeconfig)) as client:
                return await client.get_raw(path)

        return json.loads(asyncio.run(ask()))

    def delete(self, path: str) -> None:
        """Delete an object by its path, at once."""

        async def send() -> None:
            async with Client(ClusterConfig.load(self.kubeconfig)) as client:
                await client.request("DELETE", path, body=b'{"gracePeriodSeconds": 0}')

        asyncio.run(send())

    def create(self, *objects: Any) -> None:
        """Create objects of any kind."""

        async def send() -> None:
            async with Client(ClusterConfig.load(self.kubeconfig)) as client:
                for one in objects:
                    await client.request("POST", PATHS[one["kind"]], body=json.dumps(one).encode())

        asyncio.run(send())

    def check(self, *options: str) -> tuple[int, dict[str, Any]]:
        """Check the network; return the exit status and what was said."""
        rails = [part for one in RAILS for part in ("--rail", one)]
        done = self.run("network", "check", *rails, "-o", "json", *options)
        assert done.stdout, done.stderr
        return done.returncode, json.loads(done.stdout)


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
