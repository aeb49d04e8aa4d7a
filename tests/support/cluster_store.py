"""A real S3 server, versitygw, in a pod of a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

Json = dict[str, Any]
USER, SECRET = "reader", "not-a-secret-of-anybody"


def python(image: str, script: str, *words: str) -> Json:
    """Return a container that runs a script."""
    command = ["/opt/lockstep/bin/python", "-c", script, *words]
    return {"name": "main", "image": image, "command": command}


def store(image: str, program: Path, make: str) -> list[Json]:
    """Return an S3 server, its Service, and the Secret with its keys; *make* makes the buckets."""
    server = {
        "name": "s3",
        "image": image,
        "command": ["/program/versitygw", "--port", ":7070", "posix", "/buckets"],
        "env": [
            {"name": "ROOT_ACCESS_KEY", "value": USER},
            {"name": "ROOT_SECRET_KEY", "value": SECRET},
        ],
        "readinessProbe": {"tcpSocket": {"port": 7070}, "periodSeconds": 1},
        "volumeMounts": [
            {"name": "program", "mountPath": "/program"},
            {"name": "buckets", "mountPath": "/buckets"},
        ],
    }
    fill = {**python(image, make), "name": "fill", "volumeMounts": [server["volumeMounts"][1]]}
    spec = {
        "initContainers": [fill],
        "containers": [server],
        "securityContext": {"runAsUser": 0},
        "volumes": [
            {"name": "program", "hostPath": {"path": str(program.parent)}},
            {"name": "buckets", "emptyDir": {}},
        ],
    }
    labels = {"app": "store"}
    return [
        pod("store", spec, labels),
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "store"},
            "spec": {"selector": labels, "ports": [{"port": 7070}]},
        },
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "store"},
            "stringData": {"accessKey": USER, "secretKey": SECRET},
        },
    ]


def pod(name: str, spec: Json, labels: Json | None = None) -> Json:
    """Return a pod that runs once and ends at once."""
    meta = {"name": name, "labels": labels or {}}
    whole = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": whole}
