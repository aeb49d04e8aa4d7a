"""A training job out of Arena's flags: one function for all of its job types."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from typing import Final

from lockstep.api import duration
from lockstep.api.core import CONFIG_MAPS
from lockstep.api.names import GROUP, SCHEDULER_NAME
from lockstep.api.training import TRAINING_JOBS
from lockstep.api.wire import Json
from lockstep.cli.arena import pods
from lockstep.cli.arena.flags import TYPES, Flag
from lockstep.cli.arena.parse import Values, key
from lockstep.cli.failure import BadInput

TYPE_LABEL: Final = f"{GROUP}/arena"
"""On a job: as which of Arena's types it was submitted."""
OF_LABEL: Final = f"{GROUP}/arena-of"
"""On what goes with a job of this name."""
TENSORBOARD_PORT: Final = 6006
_SCHEDULERS: Final = ("", SCHEDULER_NAME, "default-scheduler", "volcano", "kube-batch")
_LETTERS: Final = {"w": "worker", "p": "ps", "c": "chief", "e": "evaluator"}
_ETC: Final = (
    ("arena-edl", "/etc/edl", (("machinefile", "hostfile"), ("discover_hosts.sh",) * 2)),
    ("arena-job", "/job", (("hostfile", "hostfile"),)),
)
"""Where programs of elastic and DeepSpeed jobs look for the job's files."""


def objects(type_: str, given: Values, command: str) -> list[Json]:
    """Return the job of *type_* with what goes beside it.

    Raises:
        BadInput: for a value that makes no sense or cannot be honoured.
    """
    _check(given, TYPES[type_])
    name = given["name"]
    spec: Json = {"framework": "plain", "launcher": "None", "roles": []}
    if type_ == "volcanojob":
        spec |= {"roles": _tasks(given), "queue": given["queue"]}
    elif type_ == "sparkjob":
        spec |= spark(given)
    else:
        if not given.get("image") and not _has_images(type_, given):
            raise BadInput("--image must be set", "write --image=IMAGE")
        given = {**given, "command": command}
        spec |= _of_type(type_, given)
        spec |= _common(type_, given)
    meta: Json = {
        "name": name,
        "labels": {TYPE_LABEL: type_, **pods.pairs("label", given["label"])},
    }
    if given.get("namespace"):
        meta["namespace"] = given["namespace"]
    if notes := pods.pairs("annotation", given["annotation"]):
        meta["annotations"] = notes
    found = [_object(meta, spec)]
    if given.get("config_file"):
        data = pods.config_data(given["config_file"])
        body = {"apiVersion": CONFIG_MAPS.api_version, "kind": CONFIG_MAPS.kind, "data": data}
        found.insert(0, {**body, "metadata": _beside(meta, "files")})
    if given.get("tensorboard"):
        found.append(_tensorboard(given, meta))
    return found


def _has_images(type_: str, given: Values) -> bool:
    """Say whether the pods have images of their own; a tfjob's are looked at one by one."""
    both = given.get("head_image") and given.get("worker_image")
    return type_ == "tfjob" or (type_ == "rayjob" and bool(both))


def _object(meta: Json, spec: Json) -> Json:
    kind = {"apiVersion": TRAINING_JOBS.api_version, "kind": TRAINING_JOBS.kind}
    return {**kind, "metadata": meta, "spec": spec}


def _beside(meta: Json, suffix: str) -> Json:
    own = {"name": f"{meta['name']}-{suffix}", "labels": {OF_LABEL: meta["name"]}}
    return {**own, **({"namespace": meta["namespace"]} if "namespace" in meta else {})}


def _check(given: Values, flags: Iterable[Flag]) -> None:
    if not given.get("name"):
        raise BadInput("--name must be set", "write --name=NAME")
    for flag in flags:
        if not flag.becomes and given[key(flag)] not in (flag.default, (), [], False):
            raise BadInput(f"--{flag.name} is not served by Lockstep", "leave it out")
    if (scheduler := given.get("scheduler") or "") not in _SCHEDULERS:
        raise BadInput(f"--scheduler: {scheduler!r} is not served", f"write {SCHEDULER_NAME}")


def _common(type_: str, given: Values) -> Json:
    """Return what the flags say of the job as a whole."""
    policy: Json = {"cleanPods": given.get("clean_task_policy") or "Running"}
    for flag, field in (
        ("running_timeout", "activeDeadline"),
        ("active_deadline_seconds", "activeDeadline"),
        ("ttl_after_finished", "timeToLive"),
    ):
        if given.get(flag):
            policy[field] = _time(flag, given[flag])
    found: Json = {"runPolicy": policy, "recovery": {"maxRestarts": _restarts(type_, given)}}
    if given.get("priority"):
        found["priorityClassName"] = given["priority"]
    if given.get("starting_timeout"):
        found["maxWait"] = _time("starting_timeout", given["starting_timeout"])
    if given.get("max_wait_time"):
        found["maxWait"] = f"{given['max_wait_time']}s"
    if given.get("gputopology"):
        found["alignment"] = {"preferred": ["nvlink", "pcie"]}
    return found


def _time(flag: str, text: str) -> str:
    try:
        duration.parse(text)
    except ValueError as error:
        name = flag.replace("_", "-")
        raise BadInput(f"--{name}: {error}", f"write --{name}=1h") from None
    return text


def _restarts(type_: str, given: Values) -> int:
    policy = given.get("job_restart_policy") or ""
    if policy not in ("", "Never", "OnFailure"):
        raise BadInput(f"--job-restart-policy: {policy!r}", "write Never or OnFailure")
    if type_ == "etjob" or policy == "OnFailure":
        return 0 if policy == "Never" else int(given["retry"] or given["job_backoff_limit"])
    return int(given["retry"])


def _of_type(type_: str, given: Values) -> Json:
    if type_ == "pytorchjob":
        return _pytorch(given)
    if type_ == "tfjob":
        return _tensorflow(given)
    if type_ == "rayjob":
        return ray(given)
    return _launched(type_, given)


def _pytorch(given: Values) -> Json:
    made: Json = {"template": pods.template(given)}
    if processes := given.get("nproc_per_node"):
        if processes.isdecimal() and int(processes):
            made["processesPerNode"] = int(processes)
        elif processes not in ("auto", "gpu"):
            raise BadInput(f"--nproc-per-node: {processes!r}", "write auto, gpu or a number from 1")
    roles = [{"name": "master", "replicas": 1, **made}]
    if given["workers"] > 1:
        roles.append({"name": "worker", "replicas": given["workers"] - 1, **made})
    return {"framework": "pytorch", "roles": roles, "successPolicy": {"roles": ["master"]}}


def _tensorflow(given: Values) -> Json:
    counts = {"worker": given["workers"], "ps": given["ps"]}
    counts |= {"chief": int(given["chief"]), "evaluator": int(given["evaluator"])}
    roles = []
    for name in _sequence(given.get("role_sequence") or "w,p,c,e"):
        if not counts[name]:
            continue
        image = given.get(f"{name}_image") or given.get("image") or given.get("worker_image")
        if not image:
            raise BadInput(f"no image for the pods of type {name}", "write --image=IMAGE")
        if name == "ps" and given["ps_gpus"]:
            gpus: int = given["ps_gpus"]
        else:
            gpus = given["gpus"] if name in ("worker", "chief") else 0
        own = {field: given.get(f"{name}_{field}") for field in ("cpu", "memory", "selector")}
        own |= {field: given.get(f"{name}_{field}") for field in ("cpu_limit", "memory_limit")}
        made = pods.template({**given, "gpus": gpus}, image=image, **own)
        roles.append({"name": name, "replicas": counts[name], "template": made})
    spec: Json = {"framework": "tensorflow", "roles": roles}
    if given["success_policy"] == "AllWorkers":
        spec["successPolicy"] = {"roles": ["worker"]}
    elif given["success_policy"] not in ("", "ChiefWorker"):
        raise BadInput(
            f"--success-policy: {given['success_policy']!r}", "write ChiefWorker or AllWorkers"
        )
    return spec


def _sequence(text: str) -> list[str]:
    named = [part.strip().lower() for part in text.split(",")]
    found = [_LETTERS.get(part, part) for part in named]
    if sorted(set(found)) != sorted(found) or not set(found) <= set(_LETTERS.values()):
        raise BadInput(f"--role-sequence: {text!r}", "write Worker,PS,Chief,Evaluator in any order")
    return [*found, *(name for name in _LETTERS.values() if name not in found)]


def _launched(type_: str, given: Values) -> Json:
    """Return a job of a launcher, which runs the command, and workers that let it in."""
    quiet = {**given, "gpus": 0, "device": [], "rdma": False}
    if not given.get("mounts_on_launcher", True):
        quiet |= {"data": [], "data_dir": []}
    notes = given["annotation"]
    launcher = pods.template(
        quiet,
        selector=given.get("launcher_selector"),
        annotation=[*notes, *given.get("launcher_annotation", ())],
    )
    worker = pods.template(
        {**given, "command": ""},
        selector=given.get("worker_selector"),
        annotation=[*notes, *given.get("worker_annotation", ())],
    )
    if port := given.get("ssh_port"):
        for made in (launcher, worker):
            env = made["spec"]["containers"][0]["env"]
            env.append({"name": "LOCKSTEP_SSH_PORT", "value": str(port)})
    if type_ in ("etjob", "deepspeedjob"):
        _files(given["name"], launcher["spec"])
    workers: Json = {"name": "worker", "replicas": given["workers"], "template": worker}
    if type_ == "etjob":
        low, high = given["min_workers"], given["max_workers"]
        if not low <= given["workers"] <= high:
            raise BadInput(
                f"--workers: {given['workers']} is not within {low} to {high}",
                "change --min-workers or --max-workers",
            )
        workers |= {"min": low, "max": high}
    lead = {"name": "launcher", "template": launcher, "identity": {"name": "{job}-launcher"}}
    return {"framework": "mpi", "roles": [lead, workers]}


def _files(job: str, spec: Json) -> None:
    for volume, path, files in _ETC:
        items = [{"key": file, "path": name, "mode": 0o555} for file, name in files]
        source = {"configMap": {"name": f"{job}-config", "items": items}}
        spec.setdefault("volumes", []).append({"name": volume, **source})
        mounts = spec["containers"][0].setdefault("volumeMounts", [])
        mounts.append({"name": volume, "mountPath": path})


def _tasks(given: Values) -> list[Json]:
    roles = []
    for i, image in enumerate(given["task_images"]):
        main: Json = {"name": "main", "image": image}
        main["resources"] = {"requests": {"cpu": given["task_cpu"], "memory": given["task_memory"]}}
        main["ports"] = [{"name": "task-port", "containerPort": given["task_port"]}]
        name = f"{given['task_name']}-{i}"
        replicas = given["task_replicas"]
        spec = {"containers": [main]}
        roles.append({"name": name, "replicas": replicas, "template": {"spec": spec}})
    return roles


def _tensorboard(given: Values, meta: Json) -> Json:
    """Return a job that shows the logs until it is deleted."""
    image = given.get("tensorboard_image") or given.get("image") or given.get("worker_image")
    show = f"tensorboard --logdir {given['logdir']} --host 0.0.0.0 --port {TENSORBOARD_PORT}"
    plain = {**given, "gpus": 0, "device": [], "rdma": False, "sync_mode": "", "share_memory": ""}
    plain |= {"config_file": [], "env": [], "image": image, "command": show}
    role = {"name": "tensorboard", "template": pods.template(plain)}
    spec = {"framework": "plain", "launcher": "None", "roles": [role]}
    return _object(_beside(meta, "tensorboard"), spec)


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
