"""Durable pod creations a second: four clients over TLS, everything on, and the server's start."""

from __future__ import annotations

import asyncio
import json
import os
import ssl
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.figure import Figure

WRITES_LIMIT = 2000.0
READY_LIMIT = 1000.0
CLIENTS = 4
CONNECTIONS = 8
"""Connections of each client; each has one request under way."""
PODS = 3000
"""Pods that each client creates."""


def run() -> list[Figure]:
    with tempfile.TemporaryDirectory() as directory:
        data = Path(directory)
        _start(data).kill()
        began = time.perf_counter()
        server = _start(data)
        ready = (time.perf_counter() - began) * 1000
        try:
            before = _cpu_seconds(server.pid)
            rate = _storm(data)
            spent = (_cpu_seconds(server.pid) - before) / (CLIENTS * PODS)
            appended = _bare_log(data)
        finally:
            server.kill()
            server.wait()
    return [
        Figure("API server ready", ready, "ms", "lower", READY_LIMIT),
        Figure("server's CPU for one creation", spent * 1e6, "us", "lower", 1e6 / WRITES_LIMIT),
        Figure(
            "durable pod creations",
            rate,
            "/s",
            "higher",
            WRITES_LIMIT,
            peer=appended,
            peer_name="SQLite alone, one row a transaction",
            source="same run",
        ),
    ]


def _start(data: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "lockstep", "apiserver", "--data", str(data), "--port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    assert server.stdout.readline().startswith("ready")
    return server


def _cpu_seconds(pid: int) -> float:
    """CPU time that a process has used, with which others on the machine do not interfere."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _storm(data: Path) -> float:
    url = (data / "kubeconfig").read_text().split("server: ")[1].split()[0].strip('"')
    port = url.rpartition(":")[2]
    clients = [
        subprocess.Popen(
            [sys.executable, "-m", "bench.apiserver_writes", str(data), port, str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for number in range(CLIENTS)
    ]
    for client in clients:
        assert client.stdout is not None
        assert client.stdout.readline() == b"connected\n"
    began = time.perf_counter()
    for client in clients:
        assert client.stdin is not None
        client.stdin.close()
    assert [client.wait() for client in clients] == [0] * CLIENTS
    return CLIENTS * PODS / (time.perf_counter() - began)


def _bare_log(data: Path) -> float:
    """What SQLite does on this disk without a server: one durable row after another."""
    import sqlite3

    db = sqlite3.connect(data / "bare.db", isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.execute("CREATE TABLE log (revision INTEGER PRIMARY KEY, data BLOB)")
    body = json.dumps(pod("bare")).encode()
    began = time.perf_counter()
    for revision in range(500):
        db.execute("INSERT INTO log VALUES (?, ?)", (revision, body))
    return 500 / (time.perf_counter() - began)


def pod(name: str) -> dict[str, Any]:
    """A worker of a training job, as a controller would write it: 1.6 kB."""
    env = [{"name": f"SETTING_{i}", "value": f"value-{i}"} for i in range(8)]
    env.append({"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}})
    gpus = {"nvidia.com/gpu": "8", "cpu": "32", "memory": "256Gi"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": {
                "lockstep.dev/job": "train",
                "lockstep.dev/role": "worker",
                "lockstep.dev/gang": "train",
                "lockstep.dev/index": "7",
            },
            "annotations": {"lockstep.dev/runtime": "60", "example.org/team": "research"},
            "ownerReferences": [
                {
                    "apiVersion": "batch/v1",
                    "kind": "Unknown",
                    "name": "train",
                    "uid": "0c8e3f5e-6b1e-4a7e-9c55-0a0a5b1f2c3d",
                    "controller": True,
                }
            ],
        },
        "spec": {
            "schedulerName": "lockstep",
            "restartPolicy": "Never",
            "hostname": name,
            "subdomain": "train",
            "containers": [
                {
                    "name": "worker",
                    "image": "registry.example.org/train:2.13",
                    "command": ["torchrun", "--nnodes=64", "--nproc-per-node=8", "train.py"],
                    "env": env,
                    "resources": {"limits": gpus, "requests": gpus},
                    "ports": [{"name": "rendezvous", "containerPort": 29500}],
                    "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}],  # noqa: S108
                }
            ],
            "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory"}}],
            "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
        },
    }


class _Client(asyncio.Protocol):
    """One connection that sends the next request when the last one is answered."""

    def __init__(self, requests: list[bytes], done: asyncio.Future[None]) -> None:
        self._requests = requests
        self.done = done
        self._buffer = b""
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def next(self) -> None:
        if self._requests:
            self._transport.write(self._requests.pop())
        elif not self.done.done():
            self.done.set_result(None)
            self._transport.close()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, found, body = self._buffer.partition(b"\r\n\r\n")
        if not found:
            return
        length = int(head.partition(b"Content-Length: ")[2].partition(b"\r\n")[0])
        if len(body) < length:
            return
        assert head.startswith(b"HTTP/1.1 201"), self._buffer
        self._buffer = body[length:]
        self.next()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(exc or ConnectionResetError("the server went away"))


async def _create(data: Path, port: int, client: int) -> None:
    pki = data / "pki"
    context = ssl.create_default_context(cafile=str(pki / "ca.crt"))
    context.load_cert_chain(pki / "admin.crt", pki / "admin.key")
    loop = asyncio.get_running_loop()
    requests = [_request(f"train-worker-{client}-{number}") for number in range(PODS)]
    connections = []
    for number in range(CONNECTIONS):
        own = _Client(requests[number::CONNECTIONS], loop.create_future())
        await loop.create_connection(lambda own=own: own, "127.0.0.1", port, ssl=context)
        connections.append(own)
    print("connected", flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    for connection in connections:
        connection.next()
    await asyncio.gather(*(connection.done for connection in connections))


def _request(name: str) -> bytes:
    body = json.dumps(pod(name), separators=(",", ":")).encode()
    head = (
        "POST /api/v1/namespaces/default/pods?fieldManager=bench HTTP/1.1\r\n"
        "Host: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def main() -> None:
    import uvloop

    data, port, client = sys.argv[1:]
    uvloop.run(_create(Path(data), int(port), int(client)))


if __name__ == "__main__":
    main()
