"""Objects for the tests of what people see."""

from __future__ import annotations

from typing import Any

from lockstep.api import timestamp
from lockstep.api.core import Event, Node, Pod
from lockstep.api.gang import Gang
from lockstep.api.queue import Queue
from lockstep.api.training import TrainingJob
from lockstep.api.wire import convert

NOW = timestamp.parse("2026-01-02T03:04:05Z")

Json = dict[str, Any]


def at(seconds_ago: float) -> str:
    return timestamp.show(NOW - seconds_ago)


def meta(name: str, *, namespace: str = "default", age: float = 60, **more: Any) -> Json:
    return {"name": name, "namespace": namespace, "creationTimestamp": at(age), **more}


def job(name: str = "digits", *, spec: Json | None = None, age: float = 60, **status: Any):
    role = {"name": "worker", "replicas": 2, "template": {"spec": {"containers": []}}}
    return convert(
        {
            "metadata": meta(name, age=age),
            "spec": {"framework": "pytorch", "roles": [role], **(spec or {})},
            "status": status,
        },
        TrainingJob,
    )


def gang(name: str = "digits", *, spec: Json | None = None, age: float = 60, **status: Any) -> Gang:
    return convert(
        {
            "metadata": meta(name, age=age),
            "spec": spec or {"minMember": 2},
            "status": status,
        },
        Gang,
    )


def queue(name: str, *, spec: Json | None = None, **status: Any) -> Queue:
    return convert({"metadata": meta(name), "spec": spec or {}, "status": status}, Queue)


def pod(
    name: str,
    *,
    node: str = "",
    gpus: int = 0,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    spec: Json | None = None,
    **status: Any,
) -> Pod:
    main = {"name": "main", "resources": {"limits": {"nvidia.com/gpu": gpus} if gpus else {}}}
    return convert(
        {
            "metadata": meta(name, labels=labels or {}, annotations=annotations or {}),
            "spec": {
                "schedulerName": "lockstep",
                "nodeName": node,
                "containers": [main],
                **(spec or {}),
            },
            "status": status,
        },
        Pod,
    )


def node(
    name: str,
    *,
    gpus: int = 8,
    ready: bool = True,
    leaf: str = "leaf-0",
    spec: Json | None = None,
) -> Node:
    return convert(
        {
            "metadata": meta(name, labels={"leaf": leaf, "lockstep.dev/node": "simulated"}),
            "spec": spec or {},
            "status": {
                "allocatable": {"cpu": "64", "memory": "512Gi", "nvidia.com/gpu": str(gpus)},
                "conditions": [{"type": "Ready", "status": "True" if ready else "Unknown"}],
            },
        },
        Node,
    )


def event(reason: str, message: str, *, count: int = 1, age: float = 5) -> Event:
    return convert(
        {
            "metadata": meta("e"),
            "involvedObject": {"kind": "Gang", "name": "g1", "namespace": "default"},
            "reason": reason,
            "message": message,
            "count": count,
            "lastTimestamp": at(age),
        },
        Event,
    )
