"""The pod of a kernel, and the secret by which its keeper knows who may speak to it."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any, Final

from lockstep.api.core import PODS, SECRETS
from lockstep.api.meta import owner_reference
from lockstep.api.names import QUEUE_LABEL, SCHEDULER_NAME
from lockstep.api.notebooks import EnvironmentSpec, Kernel
from lockstep.api.wire import Json
from lockstep.notebooks.core import keys
from lockstep.notebooks.core.kernel_state import KERNEL_IMAGE, SeenKernel, Settings

KERNEL_LABEL: Final = "lockstep.dev/kernel"
PORT: Final = 8890
DEFAULT_QUEUE: Final = "default"
GRACE: Final = 120
"""Seconds that a kernel has for keeping its state when its pod is ended by others."""
SHELF: Final = ".lockstep/kernels"
_PACKAGES: Final = "packages"
_COMMAND: Final = ["python", "-P", "-m", "lockstep.notebooks.inside.main"]
PACKAGES_COMMAND: Final = ("python", "-P", "-m", "lockstep.notebooks.inside.packages")
"""Before the directory of the packages; after it ``--`` and a command to run among them."""


def pod_name(kernel: Kernel) -> str:
    """Return the name of a kernel's pod."""
    return f"kernel-{kernel.metadata.name}"


def secret(kernel: Kernel, master: bytes) -> Json:
    """Return the secret of a kernel's keeper."""
    about = kernel.metadata
    owner = kernel.spec.owner
    return {
        "apiVersion": SECRETS.api_version,
        "kind": SECRETS.kind,
        "metadata": {**_owned(kernel), "name": pod_name(kernel)},
        "type": "Opaque",
        "stringData": {
            "token": keys.kernel_token(master, about.uid),
            "key": keys.owner_key(master, about.namespace, owner),
        },
    }


def pod(seen: SeenKernel, settings: Settings) -> Json:
    """Return the pod of a kernel, with the volumes of its notebook and its environment."""
    kernel = seen.kernel
    environment = seen.environment.spec if seen.environment else EnvironmentSpec()
    notebook = copy.deepcopy(seen.notebook.pod_spec) if seen.notebook else {}
    first: Json = next(iter(notebook.get("containers") or []), {})
    mounts = [*first.get("volumeMounts", []), *_mounts(environment)]
    image = environment.image or KERNEL_IMAGE
    image = settings.kernel_image if image == KERNEL_IMAGE else image
    limits = {name: str(amount) for name, amount in environment.resources.items()}
    container: Json = {
        "name": "kernel",
        "image": image,
        "env": list(_variables(seen, environment, shelf(seen))),
        "ports": [{"name": "keeper", "containerPort": PORT}],
        "resources": {"limits": limits, "requests": limits} if limits else {},
        "volumeMounts": mounts,
    }
    if image != KERNEL_IMAGE:
        container["command"] = _COMMAND
    if home := first.get("workingDir") or _home(mounts):
        container["workingDir"] = home
    spec: Json = {
        "schedulerName": SCHEDULER_NAME,
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": GRACE,
        "automountServiceAccountToken": False,
        "containers": [container],
        "volumes": [*notebook.get("volumes", []), *_volumes(environment)],
    }
    if environment.packages:
        _add_packages(spec, environment, f"{settings.cache}/{kernel.metadata.namespace}")
    for key in ("tolerations", "nodeSelector", "affinity", "imagePullSecrets", "securityContext"):
        if notebook.get(key):
            spec[key] = notebook[key]
    labels = {KERNEL_LABEL: kernel.metadata.name, QUEUE_LABEL: queue(seen)}
    return {
        "apiVersion": PODS.api_version,
        "kind": PODS.kind,
        "metadata": {**_owned(kernel), "name": pod_name(kernel), "labels": labels},
        "spec": spec,
    }


def _add_packages(spec: Json, environment: EnvironmentSpec, root: str) -> None:
    """Let the lock's packages be there before the kernel, which starts by their Python."""
    (container,) = spec["containers"]
    volume, mount = packages_mount(root)
    lock = "\n".join(environment.packages) + "\n"
    spec["volumes"].append(volume)
    spec["initContainers"] = [
        {
            "name": _PACKAGES,
            "image": container["image"],
            "command": [*PACKAGES_COMMAND, root],
            "env": [{"name": "LOCKSTEP_PACKAGES", "value": lock}],
            "volumeMounts": [mount],
        }
    ]
    container["volumeMounts"] = [*container["volumeMounts"], {**mount, "readOnly": True}]
    container["env"] += [
        {"name": "LOCKSTEP_KERNEL_PACKAGES", "value": root},
        {"name": "LOCKSTEP_KERNEL_LOCK", "value": lock},
    ]


def packages_mount(root: str) -> tuple[Json, Json]:
    """Return the volume of a node's packages in the directory *root*, and its mount."""
    volume = {"name": _PACKAGES, "hostPath": {"path": root, "type": "DirectoryOrCreate"}}
    return volume, {"name": _PACKAGES, "mountPath": root}


def environment_volumes(environment: EnvironmentSpec) -> tuple[list[Json], list[Json]]:
    """Return the mounts and the volumes of an environment's claims and datasets."""
    return _mounts(environment), _volumes(environment)


def queue(seen: SeenKernel) -> str:
    """Return the queue in which a kernel waits."""
    own = seen.environment.spec.queue if seen.environment else ""
    theirs = seen.notebook.metadata.labels.get(QUEUE_LABEL, "") if seen.notebook else ""
    return own or theirs or DEFAULT_QUEUE


def shelf(seen: SeenKernel) -> str:
    """Return where a kernel's state is kept; empty where it has no volume that lasts."""
    environment = seen.environment.spec if seen.environment else EnvironmentSpec()
    spec = seen.notebook.pod_spec if seen.notebook else {}
    first: Json = next(iter(spec.get("containers") or []), {})
    lasting = {
        one.get("name")
        for one in [*spec.get("volumes", []), *_volumes(environment)]
        if "persistentVolumeClaim" in one or "hostPath" in one
    }
    mounts = [
        one
        for one in [*first.get("volumeMounts", []), *_mounts(environment)]
        if one.get("name") in lasting and not one.get("readOnly")
    ]
    home = PurePosixPath(first.get("workingDir") or "/nowhere")
    mounts.sort(key=lambda one: not home.is_relative_to(one.get("mountPath", "")))
    if not mounts:
        return ""
    return str(PurePosixPath(mounts[0]["mountPath"]) / SHELF / seen.kernel.metadata.name)


def _home(mounts: list[Json]) -> str:
    return next((str(one["mountPath"]) for one in mounts if not one.get("readOnly")), "")


def _variables(seen: SeenKernel, environment: EnvironmentSpec, place: str) -> Iterator[Json]:
    for name, text in {**environment.variables, **seen.kernel.spec.variables}.items():
        yield {"name": name, "value": text}
    plain = {"SHELF": place, "SINCE": str(seen.kernel.spec.since), "PORT": str(PORT)}
    for name, text in plain.items():
        yield {"name": f"LOCKSTEP_KERNEL_{name}", "value": text}
    for key in ("token", "key"):
        ref = {"name": pod_name(seen.kernel), "key": key}
        yield {
            "name": f"LOCKSTEP_KERNEL_{key.upper()}",
            "valueFrom": {"secretKeyRef": ref},
        }
    yield {
        "name": "LOCKSTEP_KERNEL_HOST",
        "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}},
    }


def _mounts(environment: EnvironmentSpec) -> list[Json]:
    return [
        {"name": _volume_name(one.claim), "mountPath": one.path, "readOnly": one.read_only}
        for one in environment.volumes
    ]


def _volumes(environment: EnvironmentSpec) -> list[Json]:
    claims = dict.fromkeys(one.claim for one in environment.volumes)
    return [
        {"name": _volume_name(claim), "persistentVolumeClaim": {"claimName": claim}}
        for claim in claims
    ]


def _volume_name(claim: str) -> str:
    return f"claim-{claim}"[:63].rstrip("-.").replace(".", "-")


def _owned(kernel: Kernel) -> dict[str, Any]:
    return {"namespace": kernel.metadata.namespace, "ownerReferences": [owner_reference(kernel)]}
