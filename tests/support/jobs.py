"""Training jobs and pods for tests, written in a line."""

from __future__ import annotations

from typing import Any

from lockstep.api import timestamp
from lockstep.api.training import TrainingJob
from lockstep.api.wire import convert

NOW = 1_000_000.0

Json = dict[str, Any]


def role(name: str = "worker", replicas: int = 2, **more: Any) -> Json:
    """Return a role with one container; *more* are fields of the role, or its ``env``/``gpus``."""
    container: Json = {"name": "main", "image": "img", "command": ["python", "train.py"]}
    if env := more.pop("env", None):
        container["env"] = [{"name": k, "value": v} for k, v in env.items()]
    if gpus := more.pop("gpus", 0):
        container["resources"] = {"limits": {"nvidia.com/gpu": gpus}}
    if "command" in more:
        command = more.pop("command")
        if command is None:
            del container["command"]
        else:
            container["command"] = command
    template: Json = {"spec": {"containers": [container], **more.pop("pod", {})}}
    return {"name": name, "replicas": replicas, "template": template, **more}


def job(*roles: Json, framework: str = "pytorch", name: str = "digits", **spec: Any) -> TrainingJob:
    """Return a job of *roles* (two workers when none are given)."""
    return convert(
        {
            "metadata": {
                "name": name,
                "namespace": "team",
                "uid": f"uid-{name}",
                "generation": 1,
                "resourceVersion": "1",
                "creationTimestamp": timestamp.show(NOW),
            },
            "spec": {"framework": framework, "roles": list(roles) or [role()], **spec},
        },
        TrainingJob,
    )


def mpi_roles(workers: int = 2, **worker: Any) -> tuple[Json, Json]:
    """Return a launcher and its workers, which have no command of their own."""
    return (
        role("launcher", 1, command=["mpirun", "hostname"]),
        role("worker", workers, **{"command": None, **worker}),
    )
