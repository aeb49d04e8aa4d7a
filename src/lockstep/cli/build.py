"""A training job out of the flags of ``lockstep submit``."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from lockstep.api import duration, job_draft, names, quantity
from lockstep.api.job_draft import Draft
from lockstep.api.wire import Json
from lockstep.cli.flags import Flags

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
    recovery: Json = {"maxRestarts": flags.max_restarts, "spares": flags.spares or None}
    recovery |= {} if flags.capture else {"capture": "None"}
    container, pod = _more_of_pods(flags)
    requests: Json = {names.CPU: flags.cpu, names.MEMORY: flags.memory}
    limits: Json = {names.CPU: flags.cpu, names.MEMORY: flags.memory_limit or flags.memory}
    return job_draft.training_job(
        Draft(
            name=flags.name,
            framework=str(flags.framework),
            command=list(flags.command or ()),
            image=flags.image,
            environment=_environment(flags.env or ()),
            sizes={
                "replicas": flags.workers,
                "min": flags.minimum,
                "max": flags.maximum,
                "processesPerNode": flags.processes,
            },
            requests=_given(requests),
            limits=_given(limits),
            devices=_gpus(flags.gpus),
            container=container,
            pod=pod,
            spec={
                "queue": flags.queue,
                "priorityClassName": flags.priority,
                "topology": _given(
                    {"required": flags.topology, "preferred": flags.prefer_topology}
                ),
                "recovery": {key: n for key, n in recovery.items() if n is not None},
                "maxWait": flags.max_wait,
                "launcher": "" if flags.launcher else "None",
                "suspend": flags.suspend,
                "simulated": flags.simulated,
            },
        )
    )


def _given(words: Json) -> Json:
    return {key: value for key, value in words.items() if value}


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


def _more_of_pods(flags: Flags) -> tuple[Json, Json]:
    """Return what the flags say beyond a draft of each container, and of each pod."""
    parsed = [_volume(i, given) for i, given in enumerate(flags.volumes or ())]
    container = {
        "workingDir": flags.working_dir,
        "volumeMounts": [mount for _, mount in parsed],
    }
    pod = {
        "volumes": [volume for volume, _ in parsed],
        "nodeSelector": dict(_label(given) for given in flags.node_labels or ()),
    }
    return container, _given(pod)


def _gpus(number: float) -> Json:
    if number == int(number):
        return {names.GPU: int(number)} if number else {}
    hundredths = round(number * 100)
    if not 0 < hundredths < 100:
        raise BadFlag("--gpus", f"{number:g} is neither whole GPUs nor a part of one, such as 0.5")
    return {names.GPU_COMPUTE: hundredths}


def _environment(given: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for one in given:
        name, equals, value = one.partition("=")
        if not equals:
            raise BadFlag("--env", f"{one!r} is not NAME=VALUE")
        if not _ENV_NAME.fullmatch(name):
            raise BadFlag(
                "--env",
                f"{name!r} cannot name a variable: use ASCII letters, digits, _, - and ., the "
                "first no digit",
            )
        if name in found:
            said = f"{name}={found[name]} and {name}={value}"
            raise BadFlag("--env", f"{name} is given twice: {said}; leave one out")
        found[name] = value
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
