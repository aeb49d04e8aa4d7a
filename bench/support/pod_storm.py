"""A client that creates pods over a few connections, as fast as the server answers."""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
from functools import partial
from pathlib import Path
from typing import Any

CONNECTIONS = 8
"""Each has one request under way."""


def pod(name: str) -> dict[str, Any]:
    """A worker of a training job, as a controller would write it: 1.6 kB."""
    env: list[dict[str, Any]] = [{"name": f"SETTING_{i}", "value": f"value-{i}"} for i in range(8)]
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


def request(name: str) -> bytes:
    """The request that creates a pod."""
    body = json.dumps(pod(name), separators=(",", ":")).encode()
    head = (
        "POST /api/v1/namespaces/default/pods?fieldManager=bench HTTP/1.1\r\n"
        "Host: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def context(data: Path) -> ssl.SSLContext:
    """TLS as the administrator of the server whose directory is *data*."""
    pki = data / "pki"
    made = ssl.create_default_context(cafile=str(pki / "ca.crt"))
    made.load_cert_chain(pki / "admin.crt", pki / "admin.key")
    return made


class Creator(asyncio.Protocol):
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
        if not found or not _whole(head, body):
            return
        assert head.startswith(b"HTTP/1.1 201"), self._buffer
        self._buffer = b""
        self.next()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(exc or ConnectionResetError("the server went away"))


def _whole(head: bytes, body: bytes) -> bool:
    """Tell whether the answer is there; kube-apiserver sends longer ones in chunks."""
    _, length, rest = head.partition(b"Content-Length: ")
    if length:
        return len(body) >= int(rest.partition(b"\r\n")[0])
    return body.endswith(b"\r\n0\r\n\r\n")


def _itself(one: Creator) -> Creator:
    return one


async def _create(data: Path, port: int, client: str, count: int) -> None:
    loop = asyncio.get_running_loop()
    requests = [request(f"train-worker-{client}-{number}") for number in range(count)]
    connections = []
    tls = context(data)
    for number in range(CONNECTIONS):
        own = Creator(requests[number::CONNECTIONS], loop.create_future())
        await loop.create_connection(partial(_itself, own), "127.0.0.1", port, ssl=tls)
        connections.append(own)
    print("connected", flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    for connection in connections:
        connection.next()
    await asyncio.gather(*(connection.done for connection in connections))


def main() -> None:
    import uvloop

    data, port, client, count = sys.argv[1:]
    uvloop.run(_create(Path(data), int(port), client, int(count)))


if __name__ == "__main__":
    main()
