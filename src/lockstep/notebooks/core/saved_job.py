"""A place to work in as a job: the same image, packages, variables, volumes and home."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Final

from lockstep.api.names import API_VERSION
from lockstep.api.notebooks import EnvironmentSpec
from lockstep.api.wire import Json
from lockstep.notebooks.core.kernel_pod import PACKAGES_COMMAND, environment_volumes, packages_mount

NO_IMAGE: Final = "none"
_EXECUTE: Final = ("python", "-m", "nbconvert", "--to", "notebook", "--execute", "--inplace")


def saved_job(
    name: str,
    environment: EnvironmentSpec,
    pod_spec: Json,
    command: Sequence[str],
    *,
    workers: int = 1,
    packages_root: str,
    queue: str,
) -> Json:
    """Return the TrainingJob that runs *command* as the kernels of a place run their cells.

    *pod_spec* is that of the place's notebook, whose home and volumes the job has. A *command* that
    is one notebook (``analysis.ipynb``) runs all its cells and writes their output into it.
    *packages_root* is the directory of each node in which packages are built.
    """
    first: Json = next(iter(pod_spec.get("containers") or []), {})
    mounts, volumes = environment_volumes(environment)
    words = list(command)
    if len(words) == 1 and words[0].endswith(".ipynb"):
        words = [*_EXECUTE, words[0]]
    limits = {key: str(amount) for key, amount in environment.resources.items()}
    container: Json = {
        "name": "main",
        "image": environment.image or NO_IMAGE,
        "command": words,
        "env": [{"name": key, "value": text} for key, text in environment.variables.items()],
        "volumeMounts": [*first.get("volumeMounts", []), *mounts],
        **({"resources": {"limits": limits, "requests": limits}} if limits else {}),
        **({"workingDir": first["workingDir"]} if first.get("workingDir") else {}),
    }
    spec: Json = {"containers": [container], "volumes": [*pod_spec.get("volumes", []), *volumes]}
    if environment.packages:
        volume, mount = packages_mount(packages_root)
        spec["volumes"].append(volume)
        lock = "\n".join(environment.packages) + "\n"
        container["volumeMounts"].append(mount)
        container["env"].append({"name": "LOCKSTEP_PACKAGES", "value": lock})
        container["command"] = [*PACKAGES_COMMAND, packages_root, "--", *words]
    for key in ("tolerations", "nodeSelector", "affinity", "imagePullSecrets", "securityContext"):
        if pod_spec.get(key):
            spec[key] = copy.deepcopy(pod_spec[key])
    role = {"name": "worker", "replicas": workers, "template": {"spec": spec}}
    framework = "pytorch" if workers > 1 else "plain"
    return {
        "apiVersion": API_VERSION,
        "kind": "TrainingJob",
        "metadata": {"name": name},
        "spec": {"framework": framework, "queue": queue, "roles": [role]},
    }
