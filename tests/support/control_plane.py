"""A whole control plane, ``lockstep up``, for tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.support.apiserver import Answer, ApiServer
from tests.support.waiting import eventually_sync, stretched

from lockstep.api.names import GROUP

LOCKSTEP = (sys.executable, "-P", "-m", "lockstep")


class ControlPlane:
    """``lockstep up`` on its own directory and a free port; it ends with the test process."""

    def __init__(self, data: Path, *arguments: str) -> None:
        self.data = data
        self.arguments = arguments
        self.process: subprocess.Popen[str] | None = None
        self.ready_line = self.export_line = ""

    @property
    def kubeconfig(self) -> Path:
        return self.data / "kubeconfig"

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def start(self) -> ControlPlane:
        self.data.mkdir(parents=True, exist_ok=True)
        data = str(self.data)
        with (self.data.parent / "up.stderr").open("a") as stderr:
            self.process = subprocess.Popen(
                (*LOCKSTEP, "up", "--data", data, "--port", "0", "--leashed", *self.arguments),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
            )
        assert self.process.stdout is not None
        self.ready_line = self.process.stdout.readline()
        assert self.ready_line.startswith("ready"), self.said()
        self.export_line = self.process.stdout.readline()
        return self

    def said(self) -> str:
        return (self.data.parent / "up.stderr").read_text()

    def stop(self) -> int:
        """Ask it to end; return its exit code."""
        assert self.process is not None
        self.process.terminate()
        return self.process.wait(40)

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def run(
        self, *arguments: str, stdin: str = "", timeout: float = 200
    ) -> subprocess.CompletedProcess[str]:
        """Run a command against it."""
        return subprocess.run(
            [*LOCKSTEP, *arguments],
            input=stdin,
            env={**os.environ, "KUBECONFIG": str(self.kubeconfig)},
            capture_output=True,
            text=True,
            timeout=stretched(timeout),
            check=False,
        )

    def ok(self, *arguments: str, stdin: str = "") -> str:
        """Return what a command prints; it must succeed."""
        done = self.run(*arguments, stdin=stdin)
        assert done.returncode == 0, f"{arguments}: {done.stdout}{done.stderr}"
        return done.stdout

    def get(self, name: str) -> dict[str, Any]:
        """Return one object."""
        got: dict[str, Any] = json.loads(self.ok("get", name, "-o", "json"))
        return got

    def phase(self, name: str) -> str:
        """Return the phase of a job, or of a gang as ``gang/NAME``."""
        kind, _, name = name.rpartition("/")
        plural = f"{kind or 'trainingjob'}s"
        found = self.read(f"apis/{GROUP}/v1alpha1/namespaces/default/{plural}/{name}")
        return str(found.get("status", {}).get("phase", ""))

    def gangs(self) -> dict[str, dict[str, Any]]:
        """Return the status of each gang."""
        gangs = self.read(f"apis/{GROUP}/v1alpha1/namespaces/default/gangs")["items"]
        return {gang["metadata"]["name"]: gang.get("status", {}) for gang in gangs}

    def eventually_bound(self, gang: str, pods: int) -> None:
        """Wait until so many pods of a gang have nodes."""
        eventually_sync(
            lambda: self.gangs().get(gang, {}).get("bound") == pods, 90.0, f"{gang} is bound"
        )

    def read(self, path: str) -> dict[str, Any]:
        """Return what the server has at *path*.

        For what is waited for: a command would take a third of a second of CPU at each look.
        """
        answer = self.request("GET", path)
        assert answer.status == 200, answer.body
        return dict(answer.json)

    def request(self, method: str, path: str, body: dict[str, Any] | None = None) -> Answer:
        """Send an administrator's request, and return the answer."""
        return ApiServer(self.data, self._port()).request(method, f"/{path}", body)

    def create(self, path: str, body: dict[str, Any]) -> None:
        """Create an object in the collection at *path*."""
        answer = self.request("POST", path, body)
        assert answer.status == 201, answer.body

    def merge(self, path: str, body: dict[str, Any]) -> None:
        """Change the object at *path* by a merge patch."""
        server, kind = ApiServer(self.data, self._port()), "application/merge-patch+json"
        answer = server.request("PATCH", f"/{path}", body, content_type=kind)
        assert answer.status == 200, answer.body

    def delete(self, path: str) -> None:
        """Delete the object at *path*."""
        answer = ApiServer(self.data, self._port()).request("DELETE", f"/{path}")
        assert answer.status in (200, 202), answer.body

    def _port(self) -> int:
        return int(self.ready_line.split()[1].rpartition(":")[2])

    def eventually_phase(self, name: str, phase: str, deadline: float = 90.0) -> None:
        """Wait until a job, or ``gang/NAME``, is in *phase*."""
        eventually_sync(
            lambda: self.phase(name) == phase or None, deadline, f"{name} is {phase}: {self.data}"
        )

    def child(self, name: str) -> int | None:
        """Return the process that runs a part, if it runs."""
        for pid, command in processes(self.data):
            if f"lockstep {name} " in command:
                return pid
        return None


def processes(data: Path) -> list[tuple[int, str]]:
    """Return the processes, but for this one, whose command names *data*."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with suppress(OSError):
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                if str(data) in command:
                    found.append((int(entry.name), command))
    return found
