"""Three nodes as namespaces and an API server that they reach."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.fabric import Fabric
from tests.support.waiting import stretched

from lockstep.kube.client import Client
from lockstep.kube.config import ClusterConfig

PATHS = {"Node": "/api/v1/nodes", "CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/"}


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
            whole, capture_output=True, text=True, timeout=stretched(120), input=stdin, check=False
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
