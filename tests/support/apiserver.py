"""The embedded API server in a process of its own."""

from __future__ import annotations

import http.client
import json
import selectors
import signal
import ssl
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from tests.support.waiting import stretched

if TYPE_CHECKING:
    from lockstep.kube.client import Client

STARTUP_SECONDS = 60.0


@dataclass
class Answer:
    """A response, read."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class ApiServer:
    """A server on a directory; it may be killed and started again on the same port."""

    data: Path
    port: int = 0
    process: subprocess.Popen[str] | None = field(default=None, repr=False)

    @property
    def kubeconfig(self) -> Path:
        return self.data / "kubeconfig"

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    def start(self) -> ApiServer:
        command = [sys.executable, "-m", "lockstep", "apiserver"]
        command += ["--data", str(self.data), "--port", str(self.port)]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        line = self._first_line(self.process)
        if not line.startswith("ready"):
            self.kill()
            raise AssertionError(f"the server said {line!r} instead of ready")
        self.port = int(self._server().rpartition(":")[2])
        return self

    def _first_line(self, process: subprocess.Popen[str]) -> str:
        assert process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            if not selector.select(STARTUP_SECONDS):
                return f"nothing within {STARTUP_SECONDS} s"
        return process.stdout.readline()

    def _server(self) -> str:
        return str(self._config()["clusters"][0]["cluster"]["server"])

    def _config(self) -> Any:
        return yaml.safe_load(self.kubeconfig.read_text())

    def stop(self) -> int:
        """End it as a user would, and return its exit status."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(20)

    def kill(self) -> None:
        """End it as a power cut would, as far as the process goes."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait(20)

    def context(self, *, certificate: bool = True, user: str = "admin") -> ssl.SSLContext:
        """Return a TLS context of the client *user*, or of one without a certificate."""
        pki = self.data / "pki"
        context = ssl.create_default_context(cafile=str(pki / "ca.crt"))
        if certificate:
            context.load_cert_chain(pki / f"{user}.crt", pki / f"{user}.key")
        return context

    def connect(self, **options: Any) -> http.client.HTTPSConnection:
        context = self.context(**options)
        return http.client.HTTPSConnection(
            "127.0.0.1", self.port, context=context, timeout=stretched(30)
        )

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        headers: dict[str, str] | None = None,
        connection: http.client.HTTPSConnection | None = None,
    ) -> Answer:
        """Send one request as the administrator; a body that is not bytes is sent as JSON."""
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        sent = dict(headers or {})
        if data is not None:
            sent.setdefault("Content-Type", content_type)
        own = connection is None
        connection = connection or self.connect()
        try:
            connection.request(method, path, data, sent)
            response = connection.getresponse()
            return Answer(response.status, dict(response.headers), response.read())
        finally:
            if own:
                connection.close()

    def watch(self, path: str) -> list[dict[str, Any]]:
        """Return the events of a watch that the server ends (give it ``timeoutSeconds``)."""
        return [json.loads(line) for line in self.request("GET", path).body.splitlines()]

    def client(self) -> Client:
        """Return Lockstep's own client for the administrator."""
        from lockstep.kube.client import Client
        from lockstep.kube.config import ClusterConfig

        return Client(ClusterConfig.load(self.kubeconfig))
