"""Arena's rayjob and sparkjob: a cluster in a gang, and the command that runs against it."""

from __future__ import annotations

import re
import shlex
from typing import Any

from lockstep.cli.arena import pods
from lockstep.cli.arena.parse import Values
from lockstep.cli.failure import BadInput

Json = dict[str, Any]

_SUBMIT = '"${SPARK_HOME:-/opt/spark}/bin/spark-submit" --master "$SPARK_MASTER"'


def ray(given: Values) -> Json:
    """Return the framework and the roles of a Ray cluster with the driver of a job.

    Raises:
        BadInput: when there is no command.
    """
    if not given.get("command"):
        raise BadInput("a rayjob needs a command", "arena submit rayjob ... 'python main.py'")
    quiet = {**given, "command": ""}

    def template(role: str, said: Values) -> Json:
        gpus = given[f"{role}_gpu"] or given["gpus"] * (role == "worker")
        own = {name: given.get(f"{role}_{name}") for name in ("image", "cpu", "memory")}
        return pods.template({**said, "gpus": gpus}, **own)

    image = given.get("image") or given["head_image"]
    driver = pods.template({**given, "gpus": 0, "device": [], "image": image})
    workers: Json = {
        "name": "worker",
        "replicas": given["worker_replicas"] or given["workers"],
        "template": template("worker", quiet),
    }
    for flag, field in (("worker_min_replicas", "min"), ("worker_max_replicas", "max")):
        if given[flag]:
            workers[field] = given[flag]
    roles = [
        {"name": "head", "template": template("head", {**quiet, "device": []})},
        workers,
        {"name": "driver", "template": driver},
    ]
    return {"framework": "ray", "roles": roles, **({"suspend": True} if given["suspend"] else {})}


def spark(given: Values) -> Json:
    """Return the framework and the roles of a Spark cluster with its driver."""
    words = ["--class", given["main_class"], given["jar"].removeprefix("local://")]
    command = f"{_SUBMIT} {shlex.join(words)}"
    sized = {role: _size(role, given) for role in ("driver", "executor")}
    image = given["image"]
    driver = {
        "name": "main",
        "image": image,
        "command": ["sh", "-c", f"exec {command}"],
        "resources": {"requests": sized["driver"]},
    }
    pod: Json = {"containers": [driver]}
    if account := given.get("driver_service_account"):
        pod["serviceAccountName"] = account
    worker = {"name": "main", "image": image, "resources": {"requests": sized["executor"]}}
    master = {"name": "main", "image": image}
    roles = [
        {"name": "master", "template": {"spec": {"containers": [master]}}},
        {
            "name": "worker",
            "replicas": given["replicas"],
            "template": {"spec": {"containers": [worker]}},
        },
        {"name": "driver", "template": {"spec": pod}},
    ]
    return {"framework": "spark", "roles": roles}


def _size(role: str, given: Values) -> dict[str, str]:
    """Return what a pod asks for; memory is given in Spark's units, of which m is a mebibyte."""
    text = str(given[f"{role}_memory_request"])
    found = re.fullmatch(r"(\d+)([kmgt]?)b?", text.lower())
    if found is None:
        raise BadInput(f"--{role}-memory-request: {text!r}", "write a number with k, m, g or t")
    number, unit = found.groups()
    units = {"": "", "k": "Ki", "m": "Mi", "g": "Gi", "t": "Ti"}
    return {"cpu": str(given[f"{role}_cpu_request"]), "memory": f"{number}{units[unit]}"}
