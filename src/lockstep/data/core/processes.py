"""Data processes: a pod of the user's own over a dataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lockstep.api.core import PODS
from lockstep.api.meta import owner_reference
from lockstep.compat.fluid.objects import Condition, DataProcess, OperationStatus
from lockstep.runtime.actions import Action, Create

Json = dict[str, Any]
OVER = ("Complete", "Failed")
_VOLUME = "lockstep-dataset"


def step(
    process: DataProcess, phases: Mapping[str, str], bound: bool, waits: str, now: str
) -> tuple[Sequence[Action], OperationStatus]:
    """Return what to do for *process* and what to say of it.

    *phases* are those of pods by name, *bound* is whether the dataset is, *waits* what it is to run
    after and is not over.
    """
    name = pod_name(process)
    started = process.status.started_at
    if not process.spec.processor:
        return [], _ended("Failed", "NotServed", "spec.processor is empty", started or now, now)
    if waits:
        return [], OperationStatus(phase="Pending", waiting_for={"operationComplete": waits})
    if not bound:
        return [], OperationStatus(phase="Pending")
    phase = phases.get(name)
    if phase is None and not started:
        return [Create(PODS, _pod(process), process.metadata.namespace)], OperationStatus(
            phase="Executing", started_at=now
        )
    if phase == "Succeeded":
        return [], _ended("Complete", "DataProcessed", f"pod {name} succeeded", started, now)
    if phase == "Failed":
        text = f"pod {name} failed; `lockstep logs pod/{name}` says why"
        return [], _ended("Failed", "DataProcessFailed", text, started, now)
    return [], OperationStatus(phase="Executing", started_at=started or now)


def pod_name(process: DataProcess) -> str:
    """Return the name of the pod that carries *process* out."""
    return f"{process.metadata.name[:240]}-{process.kind.removeprefix('Data').lower()}"


def _pod(process: DataProcess) -> Json:
    spec, meta = process.spec, process.metadata
    job = (spec.processor.get("job") or {}).get("podSpec")
    script = spec.processor.get("script") or {}
    pod: Json = dict(job) if job else {"containers": [_container(script)]}
    shown = bool(spec.dataset.name)
    mount: Json = {"name": _VOLUME, "mountPath": spec.dataset.mount_path or "/data"}
    if spec.dataset.sub_path:
        mount["subPath"] = spec.dataset.sub_path
    pod["containers"] = [
        {**one, "volumeMounts": [*one.get("volumeMounts", []), *([mount] if shown else [])]}
        for one in pod["containers"]
    ]
    claim = {"claimName": spec.dataset.name}
    volumes = [*pod.get("volumes", []), *script.get("volumes", [])]
    held = [{"name": _VOLUME, "persistentVolumeClaim": claim}] if shown else []
    pod["volumes"] = [*volumes, *held]
    if account := spec.processor.get("serviceAccountName"):
        pod["serviceAccountName"] = account
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": pod_name(process),
            "namespace": meta.namespace,
            "ownerReferences": [owner_reference(process)],
        },
        "spec": {"schedulerName": "lockstep", "restartPolicy": "Never", **pod},
    }


def _container(script: Json) -> Json:
    image = str(script.get("image", "python"))
    tag = script.get("imageTag")
    command = list(script.get("command") or ["sh"])
    return {
        "name": "process",
        "image": f"{image}:{tag}" if tag else image,
        "command": [*command, "-c", str(script.get("source", ""))],
        **{name: script[name] for name in ("env", "resources", "volumeMounts") if name in script},
    }


def _ended(phase: str, reason: str, message: str, started: str, now: str) -> OperationStatus:
    condition = Condition(
        type=phase,
        status="True",
        reason=reason,
        message=message,
        last_probe_time=now,
        last_transition_time=now,
    )
    return OperationStatus(phase=phase, conditions=[condition], started_at=started or now)
