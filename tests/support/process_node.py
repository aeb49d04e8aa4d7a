"""A process node in a process of its own, and pods for it."""

from __future__ import annotations

import json
import os
import signal
import ssl
import subprocess
import sys
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.support.apiserver import ApiServer
from tests.support.waiting import eventually, stretched

from lockstep.kube.client import Client
from lockstep.kube.errors import NotFound
from lockstep.nodes.process import isolation
from lockstep.nodes.process.cgroups import Groups
from lockstep.nodes.process.spec import POD_RUNS, Pod

Json = dict[str, Any]


@dataclass
class ProcessNode:
    """A node on a directory; it may be killed and started again."""

    server: ApiServer
    data: Path
    name: str = "here"
    trusted: bool = True
    """Whether it serves with a certificate of the server's own authority."""
    before: tuple[str, ...] = ()
    """Words before the command."""
    process: subprocess.Popen[str] | None = field(default=None, repr=False)

    def start(self) -> ProcessNode:
        command = [
            *self.before,
            sys.executable,
            "-m",
            "lockstep",
            "process-node",
            "--name",
            self.name,
        ]
        command += ["--data", str(self.data), "--kubeconfig", str(self.server.kubeconfig)]
        pair = self.server.data / "pki" / "node-agent"
        # A real kube-apiserver issues none, and takes any.
        if self.trusted and pair.with_suffix(".crt").exists():
            command += ["--certificate", f"{pair}.crt", "--key", f"{pair}.key"]
        env = {**os.environ, "NODE_SECRET": "not for pods"}
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, env=env, start_new_session=True
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith("ready"), f"the node said {line!r} instead of ready"
        return self

    def kill(self) -> None:
        """End it as a power cut would; its pods go on."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(20)

    def stop(self) -> None:
        """End it as a user would, with its pods."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            assert self.process.wait(60) == 0, "the node has not stopped as it should"

    def groups(self) -> list[Path]:
        """Return the control groups that pods of this node have."""
        found = []
        for record in self.data.glob("pods/*/record.json"):
            places = json.loads(record.read_bytes()).get("groups", [])
            found += [Path(place) for place in places if Path(place).exists()]
        return found

    def shims(self) -> list[int]:
        """Return the processes that watch over containers of this node."""
        return shims_of(self.data)


def shims_of(data: Path) -> list[int]:
    """Return the processes that watch over containers of the node on a directory."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                targets = [str(fd.readlink()) for fd in (entry / "fd").iterdir()]
            except OSError:
                continue
            if any(target.startswith(str(data / "logs")) for target in targets):
                found.append(int(entry.name))
    return found


def pod(name: str, script: str | list[str], **spec: Any) -> Json:
    """Return a pod for the node ``here``; *script* is for ``sh -c``, or a whole command.

    Fields of the container go in *container*, those of the pod's spec by their own names.
    """
    command = ["sh", "-c", script] if isinstance(script, str) else script
    container = {"name": "main", "image": "none", "command": command, **spec.pop("container", {})}
    metadata = {"name": name, "namespace": "default", **spec.pop("metadata", {})}
    spec = {"nodeName": "here", "restartPolicy": "Never", "containers": [container], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


async def phase(client: Client, name: str, *phases: str, deadline: float = 90.0) -> Pod:
    """Return the pod once its phase is one of *phases*."""

    async def look() -> Pod | None:
        found = await client.get(POD_RUNS, name, "default")
        return found if found.status.phase in phases else None

    return await eventually(look, deadline, f"phase {phases} of {name}")


async def gone(client: Client, name: str, deadline: float = 90.0) -> None:
    """Wait until the server has no such pod any more."""

    async def look() -> bool:
        try:
            await client.get(POD_RUNS, name, "default")
        except NotFound:
            return True
        return False

    await eventually(look, deadline, f"the end of {name}")


async def status(client: Client, name: str) -> Json:
    """Return the pod's whole status."""
    raw = await client.get_raw(f"/api/v1/namespaces/default/pods/{name}")
    return dict(json.loads(raw)["status"])


async def reasons(client: Client, name: str) -> set[str]:
    """Return the reasons of the events about a pod."""
    raw = await client.get_raw("/api/v1/namespaces/default/events")
    items = json.loads(raw)["items"]
    return {one["reason"] for one in items if one["involvedObject"]["name"] == name}


def read_log(
    node: ProcessNode, name: str, container: str = "main", query: str = "", **client: Any
) -> str:
    """Return a container's log, asked for as the API server asks a kubelet, by *client*."""
    answer = node.server.request("GET", f"/api/v1/nodes/{node.name}")
    port = answer.json["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"]
    context = node.server.context(**client)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    url = f"https://127.0.0.1:{port}/containerLogs/default/{name}/{container}?{query}"
    with urllib.request.urlopen(url, context=context, timeout=stretched(20)) as response:
        return str(response.read().decode())


def running(pid: int) -> bool:
    """Tell whether a process runs; one that only waits to be reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] != b"Z"
    except OSError:
        return False


def needs_mounts() -> None:
    """Skip the test where no mount namespace is allowed."""
    found = isolation.find()
    if not found.mounts:
        pytest.skip(f"needs mount namespaces: {found.problem}")


def needs_cgroups() -> None:
    """Skip the test where no control groups can be made."""
    groups = Groups("tests-look")
    groups.close()
    if groups.problems:
        pytest.skip(f"needs control groups: {groups.problems}")


def needs_root() -> None:
    """Skip the test where the node does not run as root."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
