"""A training job out of the flags of ``lockstep submit``."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from lockstep.api import duration, names, quantity
from lockstep.api.imageless import NO_IMAGE, keep_off_kubelets
from lockstep.api.wire import Json
from lockstep.cli.flags import Flags

_LAUNCHED = ("mpi", "horovod")
"""Frameworks whose command runs once, in a launcher."""
_CLUSTERS = {
    "ray": ("head", "worker"),
    "spark": ("master", "worker"),
    "flink": ("jobmanager", "taskmanager"),
}
"""Frameworks that bring a cluster, whose command runs in a driver: roles of head and workers."""
_ENV_NAME = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*")
_LABEL = re.compile(r"[^=\s]+=[^=\s]*")


class BadFlag(ValueError):
    """A flag whose value makes no sense; *flag* is how the user wrote it."""

    def __init__(self, flag: str, message: str) -> None:
        super().__init__(message)
        self.flag = flag


def training_job(flags: Flags, here: str = "") -> Json:
    """Return the job that the flags describe, as a plain object.

    *here* is the caller's directory, in which a command without an image runs.

    Raises:
        BadFlag: for a value that makes no sense by itself.
    """
    _check(flags)
    if here and not (flags.image or flags.working_dir or flags.simulated):
        flags = replace(flags, working_dir=here)
    metadata: Json = {"name": flags.name} if flags.name else {"generateName": f"{flags.framework}-"}
    spec: Json = {"framework": str(flags.framework), "queue": flags.queue, "roles": _roles(flags)}
    if flags.priority:
        spec["priorityClassName"] = flags.priority
    if topology := _topology(flags):
        spec["topology"] = topology
    if flags.max_restarts is not None:
        spec["recovery"] = {"maxRestarts": flags.max_restarts}
    if flags.spares:
        spec["recovery"] = {**spec.get("recovery", {}), "spares": flags.spares}
    if flags.max_wait:
        spec["maxWait"] = flags.max_wait
    if not flags.launcher:
        spec["launcher"] = "None"
    if flags.suspend:
        spec["suspend"] = True
    if flags.simulated:
        spec["simulated"] = True
    return {
        "apiVersion": names.API_VERSION,
        "kind": "TrainingJob",
        "metadata": metadata,
        "spec": spec,
    }


def _check(flags: Flags) -> None:
    if not flags.command:
        raise BadFlag("COMMAND", "nothing to run; write it at the end: ... -- python train.py")
    if flags.minimum is not None and flags.minimum > flags.workers:
        raise BadFlag("--min", f"{flags.minimum} exceeds --workers {flags.workers}")
    if flags.maximum is not None and flags.maximum < flags.workers:
        raise BadFlag("--max", f"{flags.maximum} is less than --workers {flags.workers}")
    if len(flags.command) == 1 and any(char.isspace() for char in flags.command[0].strip()):
        quoted = shlex.quote(flags.command[0])
        raise BadFlag(
            "COMMAND",
            f"{quoted} is one word, and no program is called that; leave out the quotes, or write "
            f"-- sh -c {quoted}",
        )
    amounts = {"cpu": flags.cpu, "memory": flags.memory, "memory-limit": flags.memory_limit}
    for flag, value in amounts.items():
        if value:
            _parsed(f"--{flag}", value, quantity.parse)
    least = quantity.parse(flags.memory or "0")
    if flags.memory_limit and quantity.parse(flags.memory_limit) < least:
        text = f"{flags.memory_limit} is less than --memory {flags.memory}"
        raise BadFlag("--memory-limit", text)
    if flags.max_wait:
        _parsed("--max-wait", flags.max_wait, duration.parse)
    if flags.topology and flags.prefer_topology:
        raise BadFlag("--prefer-topology", "cannot be combined with --topology")


def _parsed(flag: str, value: str, parse: Any) -> None:
    try:
        parse(value)
    except ValueError as error:
        raise BadFlag(flag, str(error)) from None


def _topology(flags: Flags) -> Json:
    if flags.topology:
        return {"required": flags.topology}
    return {"preferred": flags.prefer_topology} if flags.prefer_topology else {}


def _roles(flags: Flags) -> list[Json]:
    worker: Json = {"name": "worker", "replicas": flags.workers}
    if flags.minimum is not None:
        worker["min"] = flags.minimum
    if flags.maximum is not None:
        worker["max"] = flags.maximum
    if flags.processes is not None:
        worker["processesPerNode"] = flags.processes
    command = list(flags.command or ())
    if parts := _CLUSTERS.get(str(flags.framework)):
        head, name = parts
        return [
            {"name": head, "template": {"spec": _pod(flags, [], devices=False)}},
            {**worker, "name": name, "template": {"spec": _pod(flags, [])}},
            {"name": "driver", "template": {"spec": _pod(flags, command, devices=False)}},
        ]
    if flags.framework not in _LAUNCHED:
        return [{**worker, "template": {"spec": _pod(flags, command)}}]
    # An MPI job's command runs once, in the launcher; the workers wait for it.
    launcher = {
        "name": "launcher",
        "replicas": 1,
        "template": {"spec": _pod(flags, command, devices=False)},
    }
    return [launcher, {**worker, "template": {"spec": _pod(flags, [])}}]


def _pod(flags: Flags, command: list[str], *, devices: bool = True) -> Json:
    container: Json = {"name": "main", "image": flags.image or NO_IMAGE}
    if command:
        container["command"] = command
    if flags.working_dir:
        container["workingDir"] = flags.working_dir
    if flags.env:
        container["env"] = _environment(flags.env)
    if resources := _resources(flags, devices=devices):
        container["resources"] = resources
    spec: Json = {"containers": [container]}
    if flags.volumes:
        parsed = [_volume(i, given) for i, given in enumerate(flags.volumes)]
        spec["volumes"] = [volume for volume, _ in parsed]
        container["volumeMounts"] = [mount for _, mount in parsed]
    if not flags.image:
        keep_off_kubelets(spec)
    if labels := dict(_label(given) for given in flags.node_labels or ()):
        spec["nodeSelector"] = labels
    return spec


def _resources(flags: Flags, *, devices: bool) -> Json:
    requests: Json = {names.CPU: flags.cpu, names.MEMORY: flags.memory}
    limits: Json = {names.CPU: flags.cpu, names.MEMORY: flags.memory_limit or flags.memory}
    limits |= _gpus(flags.gpus) if devices else {}
    both = (("requests", requests), ("limits", limits))
    given = {part: {n: v for n, v in amounts.items() if v} for part, amounts in both}
    return {part: amounts for part, amounts in given.items() if amounts}


def _gpus(number: float) -> Json:
    if number == int(number):
        return {names.GPU: int(number)}
    hundredths = round(number * 100)
    if not 0 < hundredths < 100:
        raise BadFlag("--gpus", f"{number:g} is neither whole GPUs nor a part of one, such as 0.5")
    return {names.GPU_COMPUTE: hundredths}


def _env(given: str) -> Json:
    name, equals, value = given.partition("=")
    if not equals:
        raise BadFlag("--env", f"{given!r} is not NAME=VALUE")
    if not _ENV_NAME.fullmatch(name):
        raise BadFlag(
            "--env",
            f"{name!r} cannot name a variable: use ASCII letters, digits, _, - and ., the first no "
            "digit",
        )
    return {"name": name, "value": value}


def _environment(given: Sequence[str]) -> list[Json]:
    found = [_env(one) for one in given]
    values: dict[str, str] = {}
    for one in found:
        name, value = one["name"], one["value"]
        if name in values:
            said = f"{name}={values[name]} and {name}={value}"
            raise BadFlag("--env", f"{name} is given twice: {said}; leave one out")
        values[name] = value
    return found


def _label(given: str) -> tuple[str, str]:
    if not _LABEL.fullmatch(given):
        raise BadFlag("--node-label", f"{given!r} is not LABEL=VALUE")
    key, _, value = given.partition("=")
    return key, value


def _volume(index: int, given: str) -> tuple[Json, Json]:
    source, _, rest = given.partition(":")
    path, _, mode = rest.partition(":")
    if not source or not path.startswith("/") or mode not in ("", "ro", "rw"):
        raise BadFlag(
            "--volume",
            f"{given!r} is not /HOST/PATH:/MOUNT/PATH, or CLAIM:/MOUNT/PATH, with :ro to read only",
        )
    name = f"volume-{index}"
    mount: Json = {"name": name, "mountPath": path}
    if mode == "ro":
        mount["readOnly"] = True
    if source.startswith("/"):
        return {"name": name, "hostPath": {"path": source}}, mount
    return {"name": name, "persistentVolumeClaim": {"claimName": source}}, mount
