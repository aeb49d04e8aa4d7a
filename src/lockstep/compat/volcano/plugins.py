"""Volcano's plugins of jobs: what they set in each pod.

Facts: volcano-sh/volcano:pkg/controllers/job/plugins.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NoReturn

from lockstep.api.core import AnyObject
from lockstep.api.wire import Json
from lockstep.compat import native
from lockstep.compat.translation import Refused

SVC_MOUNT: Final = "/etc/volcano"
SSH_MOUNT: Final = "/root/.ssh"
_SVC_VOLUME: Final = "lockstep-volcano-svc"


@dataclass
class Built:
    """A job as the plugins change it: its roles by the names of their tasks."""

    obj: AnyObject
    tasks: dict[str, Json]
    framework: str = "plain"
    ssh: bool = False
    more: list[Json] = field(default_factory=list)
    """Objects beside the job."""

    def hosts(self, task: str) -> list[str]:
        """Return the names under which the pods of *task* reach each other."""
        name = self.obj.metadata.name
        return [f"{name}-{task}-{i}.{name}" for i in range(self.tasks[task]["replicas"])]

    def set(self, name: str, value: str, only: str = "") -> None:
        """Set a variable in the pods of all tasks, or of the task *only*."""
        for task, role in self.tasks.items():
            if only in ("", task):
                role["identity"].setdefault("env", {})[name] = value


class _Arguments(argparse.ArgumentParser):
    def __init__(self, plugin: str) -> None:
        super().__init__(prog=plugin, add_help=False, allow_abbrev=False)
        self.plugin = plugin

    def error(self, message: str) -> NoReturn:
        raise Refused(f"spec.plugins[{self.plugin}]", None, message)


def _read(plugin: str, given: list[str], **defaults: str) -> dict[str, str]:
    parser = _Arguments(plugin)
    for name, default in defaults.items():
        parser.add_argument(f"--{name}", f"-{name}", default=default)
    found: dict[str, str] = vars(parser.parse_args(given))
    return found


def _env(built: Built, given: list[str]) -> None:
    _read("env", given)
    built.set("VC_TASK_INDEX", "{index}")
    built.set("VK_TASK_INDEX", "{index}")


def _svc(built: Built, given: list[str]) -> None:
    """Name all hosts in variables and in files; the service itself every job has."""
    said = _Arguments("svc")
    for flag in ("publish-not-ready-addresses", "disable-network-policy", "inject-hosts-env"):
        said.add_argument(f"--{flag}", f"-{flag}", nargs="?", const="true", default="false")
    said.parse_args(given)
    files: dict[str, str] = {}
    for task in built.tasks:
        hosts, upper = built.hosts(task), re.sub(r"[^A-Z0-9]", "_", task.upper())
        files[f"{task}.host"] = "\n".join(hosts)
        built.set(f"VC_{upper}_HOSTS", ",".join(hosts))
        built.set(f"VC_{upper}_NUM", str(len(hosts)))
    name = f"{built.obj.metadata.name}-svc"
    built.more.append(native.config_map(built.obj, name, files))
    for role in built.tasks.values():
        native.mount(role["template"], _SVC_VOLUME, SVC_MOUNT, {"configMap": {"name": name}})


def _ssh(built: Built, given: list[str]) -> None:
    found = _read("ssh", given, **{"ssh-key-file-path": SSH_MOUNT})
    if (path := found["ssh_key_file_path"]) != SSH_MOUNT:
        # Beside the usual place: other users than root look for them there.
        keys = {"secret": {"secretName": f"{built.obj.metadata.name}-ssh"}}
        for role in built.tasks.values():
            native.mount(role["template"], "lockstep-volcano-ssh", path, keys)
    built.ssh = True


def _pytorch(built: Built, given: list[str]) -> None:
    # Pods wait for rank 0 as torch itself does: its name is there before they start.
    waits = dict.fromkeys(("wait-master-enabled", "wait-master-timeout", "wait-master-image"), "")
    found = _read("pytorch", given, master="master", worker="worker", port="", **waits)
    master = _task(built, "pytorch", found["master"])
    # Rank 0 comes first.
    built.tasks = {found["master"]: master} | built.tasks
    built.framework = "pytorch"
    built.set("MASTER_ADDR", built.hosts(found["master"])[0])
    built.set("WORLD_SIZE", str(sum(role["replicas"] for role in built.tasks.values())))
    built.set("RANK", "{rank}")
    if found["port"]:
        for role in built.tasks.values():
            main = role["template"]["spec"]["containers"][0]
            own = {"name": "MASTER_PORT", "value": found["port"]}
            main["env"] = [*(main.get("env") or []), own]
    if "svc" not in built.obj.spec.get("plugins", {}):
        _svc(built, [])


def _tensorflow(built: Built, given: list[str]) -> None:
    types = {"ps": "ps", "worker": "worker", "chief": "chief", "evaluator": "evaluator"}
    found = _read("tensorflow", given, **types, port="2222")
    named = {found[type_]: type_ for type_ in types if found[type_] in built.tasks}
    if not named:
        raise Refused("spec.plugins[tensorflow]", None, "no task is a ps, worker, chief, evaluator")
    cluster = {
        type_: [f"{host}:{found['port']}" for host in built.hosts(task)]
        for task, type_ in named.items()
    }
    for task, type_ in named.items():
        config = {"cluster": cluster, "task": {"type": type_, "index": "{index}"}}
        text = json.dumps(config).replace('"{index}"', "{index}")
        if sum(map(len, cluster.values())) > 1:
            built.set("TF_CONFIG", text, task)


def _mpi(built: Built, given: list[str]) -> None:
    found = _read("mpi", given, master="master", worker="worker", port="22")
    _task(built, "mpi", found["master"])
    if found["worker"] in built.tasks:
        built.set("MPI_HOST", ",".join(built.hosts(found["worker"])), found["master"])
    plugins = built.obj.spec.get("plugins", {})
    built.ssh = True
    if "svc" not in plugins:
        _svc(built, [])


def _ray(built: Built, given: list[str]) -> None:
    """Start the head in its task's container, and the workers, which look for it, in theirs."""
    usual = {"headContainer": "head", "workerContainer": "worker"}
    ports = {"port": "6379", "dashboardPort": "8265", "clientPort": "10001"}
    found = _read("ray", given, head="head", worker="worker", **usual, **ports)
    _task(built, "ray", found["head"])
    host = built.hosts(found["head"])[0]
    start = (
        f"ray start --head --block --dashboard-host=0.0.0.0 --port={found['port']} "
        f"--dashboard-port={found['dashboardPort']} "
        f"--ray-client-server-port={found['clientPort']}"
    )
    _begin(built, found["head"], found["headContainer"], start)
    if found["worker"] in built.tasks:
        join = f"ray start --block --address={host}:{found['port']}"
        _begin(built, found["worker"], found["workerContainer"], join)
    if "svc" not in built.obj.spec.get("plugins", {}):
        _svc(built, [])


def _begin(built: Built, task: str, container: str, command: str) -> None:
    """Let the task's *container* run *command*, in place of its own.

    Raises:
        Refused: when the task has no such container.
    """
    containers = built.tasks[task]["template"]["spec"]["containers"]
    main = next((one for one in containers if one["name"] == container), None)
    if main is None:
        known = ", ".join(one["name"] for one in containers)
        remedy = f"task {task} has no such container; there are: {known}"
        raise Refused("spec.plugins[ray]", container, remedy)
    main["command"] = ["sh", "-c", command]
    main.pop("args", None)


def _task(built: Built, plugin: str, task: str) -> Json:
    if task not in built.tasks:
        known = ", ".join(built.tasks)
        raise Refused(f"spec.plugins[{plugin}]", task, f"no such task; there are: {known}")
    return built.tasks[task]


PLUGINS: Final[dict[str, Callable[[Built, list[str]], None]]] = {
    "env": _env,
    "svc": _svc,
    "ssh": _ssh,
    "pytorch": _pytorch,
    "tensorflow": _tensorflow,
    "mpi": _mpi,
    "ray": _ray,
}


def apply(built: Built, plugins: dict[str, list[str]]) -> None:
    """Let *plugins*, with their arguments, change the job.

    Raises:
        Refused: when one is not served or does not understand its arguments.
    """
    for name in plugins:
        if name not in PLUGINS:
            raise Refused("spec.plugins", name, f"served are: {', '.join(PLUGINS)}")
    for name, plugin in PLUGINS.items():
        if name in plugins:
            plugin(built, plugins[name])
