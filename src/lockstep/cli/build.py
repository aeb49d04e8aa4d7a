"""A training job out of the flags of ``lockstep submit``."""

from __future__ import annotations

import re
from typing import Any

from lockstep.api import duration, names, quantity
from lockstep.cli.flags import Flags

Json = dict[str, Any]

NO_IMAGE = "none"
"""What a job without an image names; only nodes that Lockstep runs itself need none."""
_ENV_NAME = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*")
_LABEL = re.compile(r"[^=\s]+=[^=\s]*")


class BadFlag(ValueError):
    """A flag whose value makes no sense; *flag* is how the user wrote it."""

    def __init__(self, flag: str, message: str) -> None:
        super().__init__(message)
        self.flag = flag


def training_job(flags: Flags) -> Json:
    """Return the job that the flags describe, as a plain object.

    Raises:
        BadFlag: for a value that makes no sense by itself.
    """
    _check(flags)
    metadata: Json = {"name": flags.name} if flags.name else {"generateName": f"{flags.framework}-"}
    spec: Json = {"framework": str(flags.framework), "queue": flags.queue, "roles": _roles(flags)}
    if flags.priority:
        spec["priorityClassName"] = flags.priority
    if topology := _topology(flags):
        spec["topology"] = topology
    if flags.max_restarts is not None:
        spec["recovery"] = {"maxRestarts": flags.max_restarts}
    if flags.max_wait:
        spec["maxWait"] = flags.max_wait
    if flags.suspend:
        spec["suspend"] = True
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
    for flag, value in (("--cpu", flags.cpu), ("--memory", flags.memory)):
        if value:
            _parsed(flag, value, quantity.parse)
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
    if flags.framework != "mpi":
        return [{**worker, "template": {"spec": _pod(flags, list(flags.command or ()))}}]
    # An MPI job's command runs once, in the launcher; the workers wait for it.
    launcher = {
        "name": "launcher",
        "replicas": 1,
        "template": {"spec": _pod(flags, list(flags.command or ()), devices=False)},
    }
    return [launcher, {**worker, "template": {"spec": _pod(flags, [])}}]


def _pod(flags: Flags, command: list[str], *, devices: bool = True) -> Json:
    container: Json = {"name": "main", "image": flags.image or NO_IMAGE}
    if command:
        container["command"] = command
    if flags.working_dir:
        container["workingDir"] = flags.working_dir
    if flags.env:
        container["env"] = [_env(given) for given in flags.env]
    if resources := _resources(flags, devices=devices):
        container["resources"] = resources
    spec: Json = {"containers": [container]}
    if flags.volumes:
        parsed = [_volume(i, given) for i, given in enumerate(flags.volumes)]
        spec["volumes"] = [volume for volume, _ in parsed]
        container["volumeMounts"] = [mount for _, mount in parsed]
    if not flags.image:
        spec["affinity"] = _own_nodes()
    if labels := dict(_label(given) for given in flags.node_labels or ()):
        spec["nodeSelector"] = labels
    return spec


def _own_nodes() -> Json:
    """Return what keeps a pod without an image off kubelets, which would try to pull one."""
    runs_itself = {"key": names.NODE_KIND_LABEL, "operator": "Exists"}
    terms = [{"matchExpressions": [runs_itself]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {"nodeAffinity": required}


def _resources(flags: Flags, *, devices: bool) -> Json:
    requests = {
        name: value
        for name, value in ((names.CPU, flags.cpu), (names.MEMORY, flags.memory))
        if value
    }
    resources: Json = {"requests": requests} if requests else {}
    if flags.gpus and devices:
        resources["limits"] = {names.GPU: flags.gpus}
    return resources


def _env(given: str) -> Json:
    name, equals, value = given.partition("=")
    if not equals or not _ENV_NAME.fullmatch(name):
        raise BadFlag("--env", f"{given!r} is not NAME=VALUE")
    return {"name": name, "value": value}


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
